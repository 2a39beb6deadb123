"""All numbers that a report prints or draws stand in report.json: walk its blocks and look."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from toolkit.comparison.compare import compare_runs
from toolkit.report import as_blocks, as_json, build_report, wording
from toolkit.report.blocks import Details, Figure, Section, Table, as_cell, plain
from toolkit.report.cost import COLUMNS
from toolkit.report.markdown_blocks import escape, render_markdown
from toolkit.stats import Interval

N = 120


def log(seed, shift):
    """Losses every step with joules, validation every 10 steps."""
    rng = np.random.default_rng(seed)
    events = []
    for step in range(1, 41):
        where = {"step": step, "seconds": 0.5 * step + 0.1 * seed, "joules": 20.0 * step}
        events.append({**where, "loss": 2 / step + shift + rng.random() / 10})
        if step % 10 == 0:
            events.append({**where, "validation": {"accuracy": 0.5 + step / 100 - shift / 2}})
    return events


def flip(labels, classes, share, seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(N) < share, (labels + 1) % classes, labels)


@pytest.fixture(params=[2, 14], ids=["two classes", "too many classes for a matrix"])
def comparison(request, make_run, tmp_path):
    """Two implementations over three seeds and one run of a third method.

    Of two classes with a learning curve, else with a file of predictions.
    """
    classes = request.param
    names = [f"类{number}" for number in range(classes)]
    labels = np.arange(N) % classes

    def run(title, share, seed, implementation, shift, train=2000):
        folder = f"{title}-{seed}-{train}"
        summary = {
            "seed": seed, "run_id": folder,
            "model": {"architecture": f"{'Scratch' * (implementation == 'scratch')}"
                      "BertForSequenceClassification"},
            "data": {"label_names": names, "train_examples": train},
            "training": {"examples_per_second": 50.0 + seed + share, "energy_joules": 800.0 + seed,
                         "flops": 1e12 * (1 + shift), "utilisation": 0.4,
                         "peak_memory_bytes": 2**30, "seconds": 20.0 + seed},
            "published": {"metric": "accuracy", "value": 0.95, "split": "test",
                          "setting": "theirs", "source": "a paper"},
        }  # fmt: skip
        settings = {"seed": seed, "implementation": implementation, "layers": 2, "rate": shift}
        settings |= {"train_size": train}
        if title != "third":
            settings["rate"] = 0.0
        answers = flip(labels, classes, share, seed + len(title))
        return make_run(title, labels, answers, summary, folder, settings, log(seed, shift))

    runs = [run("ours", 0.2, seed, "scratch", 0.0) for seed in range(3)]
    runs += [run("HuggingFace's", 0.21, seed, "hf", 0.05) for seed in range(3)]
    runs.append(run("third", 0.45, 0, "hf", 0.1))
    if classes == 2:
        more = [run("ours", 0.4, seed, "scratch", 0.0, train=500) for seed in range(3)]
        return compare_runs(runs, more, draws=100, target=0.7)
    theirs = tmp_path / "theirs.csv"
    rows = [f"id-{row},{names[label]}" for row, label in enumerate(flip(labels, classes, 0.5, 9))]
    theirs.write_text("id,prediction\n" + "\n".join(rows), encoding="utf-8")
    return compare_runs(runs, draws=100, predictions={"theirs": theirs}, target=0.7)


def walk(blocks, where=()):
    """Every table and figure with the headings above it."""
    for block in blocks:
        if isinstance(block, Section):
            yield from walk(block.blocks, (*where, block.title))
        elif isinstance(block, Details):
            yield from walk(block.blocks, (*where, block.summary))
        elif isinstance(block, Table | Figure):
            yield where, block


def cells(table):
    """Texts of the body, a cell's second line after a line end."""
    shown = [[as_cell(cell) for cell in row] for row in table.rows]
    return [
        ["\n".join(filter(None, (plain(cell.text), cell.detail))) for cell in row] for row in shown
    ]


class Expected:
    """What the tables must say, written from report.json alone."""

    def __init__(self, document, comparison):
        self.json = document
        self.measures = {measure.key: measure for measure in comparison.view.measures}
        self.keys = [measure["key"] for measure in document["measures"]]
        [self.primary] = [m["key"] for m in document["measures"] if m["decides"]]
        self.titles = [method["title"] for method in document["methods"]]

    def table(self, where, table):
        header = [plain(as_cell(cell).text) for cell in table.header]
        match where:
            case ("What was compared", "Settings that differ"):
                return [
                    [name, *(str(values.get(title, "–")) for title in self.titles)]
                    for name, values in self.json["comparability"]["settings_that_differ"].items()
                ]
            case ("Results",):
                return self.costs(header) if "parameters" in header else self.quality()
            case ("Statistics",):
                return [self.pair(pair) for pair in self.json["pairs"]]
            case ("Statistics", "Seeds alone, examples alone"):
                return [self.alone(pair) for pair in self.json["pairs"]]
            case ("Training curves", "Time to target"):
                return self.targets()
            case ("Two implementations of the same model",):
                [twins] = self.json["implementations"]
                return [self.twins(seed) for seed in twins["seeds"]]
            case ("Learning curve",):
                return self.learning_curve()
            case ("Where they differ",):
                return [
                    [pair["first"], pair["second"],
                     *map(wording.one_decimal, pair["mean_counts"].values())]
                    for pair in self.json["pairs"]
                ]  # fmt: skip
            case ("Where they differ", "Confusions"):
                return [
                    [one["truth"], one["answer"], *map(wording.count, one["counts"].values())]
                    for one in self.json["confusions"]["most_frequent"]
                ]
            case ("Reproduce", "Published numbers"):
                return [self.published(found) for found in self.json["published"]]
            case ("Reproduce", "Data, hardware, versions and signatures"):
                return self.facts()
            case ("Where they differ", title):
                return self.breakdown(title, header)
        raise AssertionError(f"a table that report.json does not know: {where}")

    def interval(self, found):
        interval = Interval(found["low"], found["high"], "")
        return wording.brackets(self.measures[self.primary], interval)

    def advantage(self, found):
        interval = Interval(found["low"], found["high"], "")
        return wording.advantage_brackets(self.measures[self.primary], interval)

    def quality(self):
        rows = []
        for method in self.json["methods"]:
            row = [method["title"]]
            for key in self.keys:
                found, measure = method["estimates"][key], self.measures[key]
                row.append(f"{wording.value(measure, found['value'])}\n"
                           f"{self.interval(found['interval'])}")  # fmt: skip
            seeds = method["interval_over_seeds"]
            row.append(str(len(method["runs"])) + (f"\n{self.interval(seeds)}" if seeds else ""))
            rows.append([*row, wording.p_value(method["p_best_other_holm"])])
        return rows

    def costs(self, header):
        rows = []
        for method in self.json["methods"]:
            model = method["runs"][0]["model"]
            size = wording.parameters(model.get("parameters_total"))
            if "parameters_trained" in model:
                size += f"\n{wording.parameters(model['parameters_trained'])} trained"
            row = [method["title"], size]
            for column in COLUMNS:
                if column.heading in header:
                    cost = method["costs"].get(column.key)
                    row.append("–" if cost is None else column.written(cost["mean"]))
            rows.append(row)
        return rows

    def pair(self, pair):
        found = [pair["differences"][key] for key in self.keys]
        written = []
        for key, one in zip(self.keys, found, strict=True):
            better, measure = one["better_by"], self.measures[key]
            interval = Interval(better["low"], better["high"], "")
            written.append(f"{wording.signed_difference(measure, better['value'])}\n"
                           f"[{wording.difference_interval(measure, interval)}]"
                           .replace(" to ", ", "))  # fmt: skip
        ps = [wording.p_value(found[0]["p"]), wording.p_value(pair["p_holm"])]
        return [f"{pair['first']} − {pair['second']}", written[0], *ps, *written[1:]]

    def alone(self, pair):
        found = pair["differences"][self.primary]
        over = found["over_seeds"] or {}
        seeds, nested = over.get("seeds"), over.get("nested_bootstrap")
        return [
            f"{pair['first']} − {pair['second']}",
            self.advantage(found["interval"]),
            wording.p_value(found["p_examples"]),
            "–" if seeds is None else self.advantage(seeds["interval"]),
            "–" if seeds is None else wording.p_value(seeds["p"]),
            "–" if nested is None else self.advantage(nested["interval"]),
        ]

    def targets(self):
        reached = self.json["targets"]["reached"]
        rows = []
        for title in self.titles:
            row = [title]
            for target in reached:
                points = target["by"][title]
                if points is None or None in points:
                    row.append("–")
                    continue
                steps = [point["step"] for point in points]
                seconds, joules = (
                    np.mean([point[name] for point in points]) for name in ("seconds", "joules")
                )
                low, high = min(steps), max(steps)
                row.append(f"{wording.energy(joules)}\nstep {low}"
                           + (f"–{high}" if high > low else "")
                           + f", {wording.seconds(seconds)}")  # fmt: skip
            rows.append(row)
        return rows

    def twins(self, seed):
        return [
            str(seed["seed"]),
            wording.tiny(seed["loss"]["difference"]),
            f"{seed['loss']['equal']} of {seed['loss']['steps']} steps",
            wording.tiny(seed["validation"]["difference"]),
            wording.count(seed["other_answers"]),
            f"{seed['speed_ratio']:.2f}",
        ]

    def learning_curve(self):
        series = self.json["learning_curve"]
        sizes = sorted({point["train_examples"] for line in series for point in line["points"]})
        rows = []
        for size in sizes:
            row = [wording.count(size)]
            for line in series:
                found = [p[self.primary] for p in line["points"] if p["train_examples"] == size]
                row.append(
                    f"{wording.value(self.measures[self.primary], found[0]['value'])}\n"
                    f"{self.interval(found[0]['interval'])}"
                    if found
                    else "–"
                )
            rows.append(row)
        return rows

    def published(self, found):
        measure, there = self.measures[found["metric"]], found["published"]
        return [
            found["title"], there["split"], wording.value(measure, found["value"]),
            wording.value(measure, there["value"]), wording.difference(measure, found["distance"]),
            there["setting"], there["source"],
        ]  # fmt: skip

    def facts(self):
        rows = []
        for part in (
            self.json["test_set"]["facts"], self.json["environment"], self.json["report_made_with"]
        ):  # fmt: skip
            for name, value in part.items():
                by_run = isinstance(value, dict)
                rows.append(
                    [name, "; ".join(f"{k}: {v}" for k, v in value.items()) if by_run else value]
                )
        signatures = self.json["methods"][0]["runs"][0]["signatures"]
        return rows + [[f"signature of {name}", value] for name, value in signatures.items()]

    def breakdown(self, title, header):
        [found] = [one for one in self.json["breakdowns"] if one["title"] == title]
        parts = [
            [wording.percent(part["values"][method]) for method in self.titles]
            for part in found["parts"]
        ]
        if header[0] == "method":
            counts = [f"{p['name']}\n{p['examples']} texts" for p in found["parts"]]
            return [
                ["method", *counts],
                *([m, *c] for m, *c in zip(self.titles, *parts, strict=True)),
            ]
        return [
            [part["name"], wording.count(part["examples"]), *values]
            for part, values in zip(found["parts"], parts, strict=True)
        ]


def check_table(where, table, expected):
    printed, wanted = cells(table), expected.table(where, table)
    if where == ("Results",) and "parameters" in map(str, table.header):
        for row, line in zip(printed, wanted, strict=True):  # the range of the seeds stands below
            for cell, mean in zip(row[2:], line[2:], strict=True):
                assert cell.split("\n")[0] == mean
        printed, wanted = ([row[:2] for row in rows] for rows in (printed, wanted))
    if where[-1].startswith("By ") and table.header[0] == "method":
        head = [as_cell(cell) for cell in table.header]
        printed = [["\n".join(filter(None, (plain(c.text), c.detail))) for c in head], *printed]
    assert printed == wanted, where


def check_figure(figure, document):
    name = figure.name
    if name.startswith(("training_loss_", "validation_")):
        [found] = [c for c in document["training_curves"] if c["picture"] == f"{name}.svg"]
        lines = {
            (x, y)
            for method in found["methods"]
            for x, y in zip(method["at"], method["mean"], strict=True)
        }
        [axes] = figure.draw().axes
        drawn = 0
        for line in axes.lines:
            points = [*zip(*map(np.asarray, line.get_data()), strict=True)]
            if found["target"] is not None and all(y == found["target"] for _, y in points):
                continue  # the line of the target, across the picture
            for x, y in points:
                assert (float(f"{x:.7g}"), float(f"{y:.7g}")) in lines
                drawn += 1
        assert drawn >= len(lines)
        for method in found["methods"]:
            assert len(method["low"]) == len(method["high"]) == len(method["at"])
            low, mean, high = (np.array(method[name]) for name in ("low", "mean", "high"))
            assert (low <= mean + 1e-6).all()
            assert (mean <= high + 1e-6).all()
    elif name == "confusion_matrices":
        counts = document["confusions"]["counts"]
        drawn = [axes for axes in figure.draw().axes if len(axes.images) or len(axes.collections)]
        assert len(drawn) >= len(counts)
        for method in document["methods"]:
            assert np.sum(counts[method["title"]]) == N * len(method["runs"])
    else:
        of_tables = ("accuracy", "differences", "learning_curve", "breakdown_")
        assert name.startswith(of_tables), f"a figure that report.json does not know: {name}"


def test_every_table_and_figure_of_the_report_is_in_its_json(comparison):
    report = build_report(comparison)
    document = json.loads(json.dumps(as_json(report), allow_nan=False))
    expected = Expected(document, comparison)
    found = list(walk(as_blocks(report).blocks))
    for where, block in found:
        if isinstance(block, Table):
            check_table(where, block, expected)
        else:
            check_figure(block, document)
    places = {where[-1] for where, block in found if isinstance(block, Table)}
    assert {
        "Settings that differ", "Results", "Statistics", "Seeds alone, examples alone",
        "Time to target", "Two implementations of the same model", "Where they differ", "By class",
        "Published numbers", "Learning curve" if comparison.curve else "Confusions",
    } <= places  # fmt: skip
    figures = {block.name for _, block in found if isinstance(block, Figure)}
    assert {
        f"{what}_{axis}"
        for what in ("training_loss", "validation")
        for axis in ("step", "seconds", "joules")
    } <= figures
    assert ("confusion_matrices" in figures) == bool(comparison.curve)


def needed_of(make_run, ours, theirs):
    """What is said and what is written of two runs of 120 texts with so many answers right."""
    labels = np.arange(N) % 2
    runs = [
        make_run(title, labels, np.where(right, labels, 1 - labels))
        for title, right in (("A", ours), ("B", theirs))
    ]
    document = as_json(build_report(compare_runs(runs, draws=20)))
    return document["verdict"]["headline"], document["pairs"][0]["needed"]


def test_what_it_would_take_to_separate_two_runs_is_in_the_json(make_run):
    rows = np.arange(N)
    # 20 only A right, 14 only B: Connor's formula by hand.
    headline, needed = needed_of(
        make_run, (rows < 100) | (rows >= 120), (rows < 80) | (rows >= 106)
    )
    share, difference = 34 / 120, 6 / 120
    root = norm.ppf(0.975) * share**0.5 + norm.ppf(0.8) * (share - difference**2) ** 0.5
    examples = int(np.ceil((root / difference) ** 2))
    assert needed["examples"] == examples
    assert f"about {wording.about(examples)} test texts (80% power)" in headline
    assert (needed["level"], needed["power"]) == (pytest.approx(0.05), 0.8)
    assert needed["seeds"] is None
    assert not needed["equal"]


def test_of_equal_runs_the_json_says_what_the_set_could_show(make_run):
    rows = np.arange(N)
    headline, needed = needed_of(make_run, rows < 100, rows >= 20)
    assert needed["equal"]
    assert needed["examples"] is None
    assert f"differences from about {wording.points(needed['detectable'])}" in headline


def test_a_significant_pair_needs_nothing(make_run):
    assert needed_of(make_run, np.arange(N) >= 0, np.arange(N) < 60)[1] is None


def test_examples_commands_and_files_of_predictions_are_in_the_json(comparison):
    document = as_json(build_report(comparison))
    files = {m["title"]: m["runs"][0]["file_of_predictions"] for m in document["methods"]}
    named = {title: file["name"] for title, file in files.items() if file is not None}
    assert named == ({} if comparison.curve else {"theirs": "theirs.csv"})
    assert all(len(file["sha256"]) == 64 for file in files.values() if file is not None)
    printed = render_markdown(as_blocks(build_report(comparison)))
    for example in (one for group in document["examples"] for one in group["examples"]):
        assert escape(example["shown"]) in printed
        for answer in example["answers"]:
            assert escape(answer["text"]) in printed
    assert document["test_set"]["without_a_model"]["what"].startswith("always answering '类")


def test_long_curves_are_thinned_as_they_are_drawn(make_run):
    labels = np.arange(N) % 2
    rng = np.random.default_rng(0)
    steps = 12_000
    losses = rng.random((2, steps))
    runs = [
        make_run(title, labels, labels, config={"method": title},
                 metrics=[{"step": i + 1, "seconds": i / 10, "loss": value}
                          for i, value in enumerate(line)])
        for title, line in zip("AB", losses, strict=True)
    ]  # fmt: skip
    document = as_json(build_report(compare_runs(runs, draws=20)))
    curve = document["training_curves"][0]
    first = curve["methods"][0]
    assert first["points_logged"] == steps
    assert 800 < len(first["at"]) < 3300
    assert max(first["mean"]) == pytest.approx(losses[0].max(), rel=1e-6)
    assert min(first["mean"]) == pytest.approx(losses[0].min(), rel=1e-6)
    assert [first["at"][0], first["at"][-1]] == [1, steps]


def test_every_key_is_explained(make_run):
    labels = np.arange(N) % 2
    runs = [make_run(title, labels, labels, config={"method": title}) for title in "AB"]
    document = as_json(build_report(compare_runs(runs, draws=20)))
    readme = (Path(__file__).parents[3] / "results/README.md").read_text(encoding="utf-8")
    table = readme.split("## report.json")[1].split("|---|---|\n")[1]
    explained = re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines()))
    assert sorted(explained) == sorted({*document, "pictures"} - {"schema_version"})
