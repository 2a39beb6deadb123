"""Curves of runs, times to a target, and two implementations side by side."""

import json

import numpy as np
import pytest

from toolkit.comparison.compare import compare_runs
from toolkit.comparison.saved_run import load_run
from toolkit.comparison.targets import targets
from toolkit.comparison.training_log import Point, read_training_log, selection_metric
from toolkit.comparison.twins import find_twins
from toolkit.errors import UserError
from toolkit.report.verdict import verdict

N = 40
LABELS = np.array([0, 1] * (N // 2))


def log(values, seconds=10.0, joules=None, losses=()):
    """A validation accuracy every 100 steps; losses every 10."""
    events = [{"step": 10 * (i + 1), "seconds": i, "loss": loss} for i, loss in enumerate(losses)]
    for number, value in enumerate(values, start=1):
        event = {"step": 100 * number, "seconds": seconds * number,
                 "validation": {"accuracy": value, "loss": 1 - (value or 0)}}  # fmt: skip
        events.append(event if joules is None else event | {"joules": joules * number})
    return events


@pytest.fixture
def logged(make_run):
    def make(title, metrics, right=30, seed=0, summary=None, **config):
        predictions = np.where(np.arange(N) < right, LABELS, 1 - LABELS)
        folder = f"{title}-{seed}"
        changes = {"seed": seed, "run_id": folder, **(summary or {})}
        settings = {"seed": seed, "method": title, **config}
        return make_run(title, LABELS, predictions, changes, folder, settings, metrics)

    return make


def test_a_log_is_read_and_a_cut_line_left_out(logged):
    folder = logged("A", log([0.5, None, 0.7], joules=5.0, losses=[2.0, 1.5]))
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 400, "valid')
    found = read_training_log(load_run(folder))
    assert found.loss == [Point(10, 0, None, 2.0), Point(20, 1, None, 1.5)]
    accuracy = found.validation["accuracy"]
    assert [point.step for point in accuracy] == [100, 200, 300]
    assert accuracy[2] == Point(300, 30.0, 15.0, 0.7)
    assert np.isnan(accuracy[1].value)


def test_without_a_log_there_is_nothing(make_run):
    found = read_training_log(load_run(make_run("A", LABELS, LABELS)))
    assert found.loss == []
    assert found.validation == {}


def test_what_takes_no_steps_is_done_at_the_end_of_its_time(logged):
    events = [
        {"step": 0, "penalty": c, "validation": {"accuracy": v}} for c, v in ((1, 0.7), (10, 0.8))
    ]
    found = read_training_log(load_run(logged("A", events)))
    assert found.validation == {"accuracy": [Point(None, 214.3, None, 0.8)]}


def test_the_selecting_metric_must_be_the_same(logged):
    a = load_run(logged("A", log([0.5])))
    b = load_run(
        logged("B", log([0.5]), summary={"training": {"selection": "lowest validation loss"}})
    )
    assert selection_metric([a]) == ("accuracy", True)
    assert selection_metric([b]) == ("loss", False)
    assert selection_metric([a, b]) is None


def test_time_to_targets_over_seeds(logged):
    runs = [
        logged("A", log([0.55, 0.72, 0.83], joules=2.0)),
        logged("A", log([0.61, 0.71, 0.81], joules=3.0), seed=1),
        logged("B", log([0.5, 0.6, 0.74], seconds=1.0), right=20),
    ]
    found = targets(compare_runs(runs, draws=50))
    assert found.metric == "accuracy"
    assert found.common == 0.74
    assert sorted(found.reached) == [0.6, 0.7, 0.74, 0.8]
    a, b = found.reached[0.7]
    assert [point.step for point in a.points] == [200, 200]
    assert a.along("seconds") == [20.0, 20.0]
    assert a.along("joules") == [4.0, 6.0]
    assert b.along("joules") is None
    assert b.along("seconds") == [3.0]
    a, b = found.reached[0.8]
    assert a.along("step") == [300, 300]
    assert b.along("step") is None
    assert found.axes() == ["step", "seconds", "joules"]


def test_a_target_that_one_seed_missed_has_no_mean(logged):
    runs = [
        logged("A", log([0.9])),
        logged("A", log([0.6]), seed=1),
        logged("B", log([0.9]), right=20),
    ]
    found = targets(compare_runs(runs, draws=50, target=0.85))
    assert list(found.reached) == [0.85]
    assert found.common is None
    a, _ = found.reached[0.85]
    assert a.along("step") is None


def test_lower_losses_are_reached_from_above(logged):
    changes = {"training": {"selection": "lowest validation loss"}}
    runs = [
        logged("A", log([0.5, 0.7, 0.9]), summary=changes),
        logged("B", log([0.5, 0.6, 0.7]), right=20, summary=changes),
    ]
    found = targets(compare_runs(runs, draws=50))
    assert found.common == pytest.approx(0.3)
    a, b = found.reached[found.common]
    assert (a.along("step"), b.along("step")) == ([200], [300])


def test_other_validation_examples_have_no_common_target(logged):
    other = {"data": {"hashes": {"validation": "f" * 64}}}
    runs = [logged("A", log([0.5])), logged("B", log([0.6]), right=20, summary=other)]
    found = targets(compare_runs(runs, draws=50))
    assert found.reached == {}
    assert "with different validation examples" in found.left_out


def test_runs_that_logged_nothing_have_no_targets(make_run):
    runs = [make_run("A", LABELS, LABELS), make_run("B", LABELS, 1 - LABELS)]
    assert targets(compare_runs(runs, draws=50)) is None


def twins(logged, shift=0.0, speed=(200.0, 100.0), right=29, steps=300, **changes):
    runs = []
    for seed in (0, 1):
        for name, implementation, rate, extra in (
            ("ours", "scratch", speed[0], 0.0),
            ("theirs", "hf", speed[1], shift * (seed + 1)),
        ):
            losses = [2.0, 1.0 + extra, 0.5]
            summary = {"training": {"tokens_per_second": rate * (seed + 1), "steps": steps}}
            folder = logged(
                name, log([0.5, 0.6 - extra], losses=losses), seed=seed, summary=summary,
                right=30 if name == "ours" else right, implementation=implementation,
                **changes,
            )  # fmt: skip
            config = (folder / "config.yaml").read_text().replace(f"method: {name}", "method: full")
            (folder / "config.yaml").write_text(config)
            runs.append(folder)
    return runs


def test_two_implementations_of_one_model(logged):
    (found,) = find_twins(compare_runs(twins(logged, shift=1e-3), draws=50))
    assert [seed.seed for seed in found.seeds] == [0, 1]
    assert found.largest_loss_gap.difference == pytest.approx(2e-3)
    assert (found.largest_loss_gap.step, found.largest_loss_gap.steps) == (20, 3)
    assert found.largest_loss_gap.equal == 1
    assert found.seeds[0].validation.difference == pytest.approx(1e-3)
    assert found.seeds[0].other_answers == 1
    assert found.speed_ratios == [2.0, 2.0]
    assert found.median_speed_ratio == 2.0


def test_other_settings_are_no_twins(logged):
    runs = twins(logged)
    config = runs[0] / "config.yaml"
    config.write_text(config.read_text() + "dropout: 0.1\n")
    comparison = compare_runs([runs[0], runs[1]], draws=50)
    assert find_twins(comparison) == []


def test_speeds_on_other_machines_have_no_ratio(logged):
    runs = twins(logged)
    text = (runs[1] / "summary.json").read_text()
    (runs[1] / "summary.json").write_text(text.replace('"threads": 2', '"threads": 8'))
    (found,) = find_twins(compare_runs(runs, draws=50))
    assert found.median_speed_ratio is None


def test_a_loss_that_is_no_number_on_one_side_is_infinitely_apart(logged):
    runs = twins(logged)
    text = (runs[1] / "metrics.jsonl").read_text().replace('"loss": 0.5}', '"loss": null}')
    (runs[1] / "metrics.jsonl").write_text(text)
    (found,) = find_twins(compare_runs(runs, draws=50))
    assert found.largest_loss_gap.difference == float("inf")


def test_a_target_that_no_share_can_have_is_refused(logged):
    runs = [logged("A", log([0.9])), logged("B", log([0.9]), right=20)]
    with pytest.raises(UserError, match=r"--target 60: validation accuracy runs from 0 to 1"):
        targets(compare_runs(runs, draws=50, target=60))


def test_twins_are_the_headline(logged):
    words = verdict(compare_runs(twins(logged, shift=1e-3), draws=50))
    assert words.headline.startswith("ours and theirs started from the same settings and seeds. ")
    assert "equal to the last bit for the first step at least, and at most 0.002 apart" in (
        words.headline
    )
    assert "ours trained 2.00 times as fast as theirs (median; 2.00 to 2.00)." in words.headline


def test_twins_that_answer_alike_say_so(logged):
    same = verdict(compare_runs(twins(logged, right=30), draws=50)).headline
    assert "They gave the same answer to all 40 test texts with both seeds." in same
    assert "equal to the last bit at all 3 steps" in same


def test_speeds_that_disagree_name_no_winner(logged):
    runs = twins(logged)
    for run, rate in zip(runs, (100.0, 110.0, 210.0, 200.0), strict=True):
        text = (run / "summary.json").read_text()
        summary = json.loads(text)
        summary["training"]["tokens_per_second"] = rate
        (run / "summary.json").write_text(json.dumps(summary))
    words = verdict(compare_runs(runs, draws=50)).headline
    assert "Neither is shown to be faster: seed by seed the ratio was 0.91 and 1.05." in words


def test_damaged_logs(logged):
    folder = logged("A", log([0.5, 0.7], losses=[1.0]))
    with (folder / "metrics.jsonl").open("ab") as stream:
        stream.write(b'{"step": 300, "loss": "high", "seconds": NaN}\n\xff\xfe\n')
    found = read_training_log(load_run(folder))
    assert found.loss[1].seconds is None
    assert np.isnan(found.loss[1].value)
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 5, "loss": 1.0}\n')
    with pytest.raises(UserError, match=r"metrics\.jsonl: step 5 stands behind step 300"):
        read_training_log(load_run(folder))


def test_a_few_steps_do_not_say_which_twin_is_faster(logged):
    words = verdict(compare_runs(twins(logged, steps=19), draws=50)).headline
    assert "They took 19 steps, too few to say which one is faster." in words
    assert "times as fast" not in words


def test_lines_of_a_log_that_are_no_json_are_told(logged):
    folder = logged("A", log([0.5, 0.7], losses=[1.0]))
    other = logged("B", log([0.5, 0.7], losses=[1.0]), right=20)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text("\n".join([lines[0], "{oh", "}no", *lines[1:], '{"st']))
    (caution,) = [c for c in compare_runs([folder, other], draws=50).cautions if "JSON" in c]
    assert "metrics.jsonl: line 2 and 1 more is no JSON" in caution
    assert read_training_log(load_run(folder)).unreadable == (2, 3)  # the last one was cut short
