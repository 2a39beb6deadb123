"""Reports say what was measured: verdict, table, statistics, examples, and nothing that was not."""

import argparse
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binomtest

from toolkit.commands import compare as command
from toolkit.comparison.compare import compare_runs
from toolkit.errors import UserError
from toolkit.report import as_blocks, as_json, build_report, print_report, wording, write_report
from toolkit.report.cost import _range
from toolkit.report.examples import LONGEST_TEXT, group_examples
from toolkit.report.markdown_blocks import render_markdown
from toolkit.report.verdict import verdict
from toolkit.stats import Interval
from toolkit.task_scores.classification import ACCURACY
from toolkit.task_scores.measures import Measure, Unit, exp_ratio

BLEU = Measure("bleu", "BLEU", Unit.SCORE, exp_ratio)
PERPLEXITY = Measure("perplexity", "perplexity", Unit.NUMBER, exp_ratio, higher_is_better=False)

PICTURES = [
    "accuracy.svg", "differences.svg", "confusion_matrices.svg", "breakdown_1.svg",
    "breakdown_2.svg",
]  # fmt: skip

N = 2000
LABELS = np.array([0, 1] * (N // 2))


def answers(*groups: tuple[int, bool]) -> np.ndarray:
    """Predictions from runs of (how many examples, right or wrong), in order."""
    right = np.concatenate([np.full(count, value) for count, value in groups])
    assert len(right) == N
    return np.where(right, LABELS, 1 - LABELS)


# 84.5 % and 84.3 % with 162 and 158 discordant pairs, and 82.6 %, as the demo is expected to end.
FROZEN = answers((1690, True), (310, False))
TUNED = answers((1528, True), (162, False), (158, True), (152, False))
CLASSIC = answers((1495, True), (195, False), (157, True), (153, False))
WEAK = answers((1200, True), (800, False))


@pytest.fixture
def tie(make_run):
    classic = {"model": {"method": "classic"}, "training": {"tokens_per_second": None}}
    return [
        make_run("chinese-bert fine-tuned", LABELS, TUNED),
        make_run("chinese-bert frozen", LABELS, FROZEN),
        make_run("TF-IDF", LABELS, CLASSIC, classic),
    ]


def markdown_of(report) -> str:
    return render_markdown(as_blocks(report))


def test_a_tie_is_called_a_tie(tie):
    words = verdict(compare_runs(tie, draws=50))
    assert words.headline.startswith(
        "No winner in accuracy: this test set of 2,000 texts cannot separate "
    )
    assert (
        "chinese-bert frozen (84.5%) from chinese-bert fine-tuned (84.3%) and TF-IDF (82.6%)."
        in (words.headline)
    )
    assert "0.2 points apart (95% interval −1.6 to 2.0)" in words.headline
    assert re.search(r"would take about \d\d\d,000 test texts", words.headline)
    first, second = words.details
    assert "exact McNemar test p = 0.87; after Holm's adjustment over 3 pairs p = 0.87" in first
    # 195 against 157 discordant pairs: below 0.05 alone, and not enough among three pairs.
    alone = binomtest(195, 195 + 157).pvalue
    assert alone < 0.05
    assert f"p = {alone:.3f}; after Holm's adjustment over 3 pairs p = 0.097" in second
    assert re.search(r"would take about \d,\d00 test texts", second)
    assert not any("is better than" in line for line in [words.headline, *words.details])


def test_the_tied_are_still_better_than_the_weak(tie, make_run):
    words = verdict(compare_runs([*tie, make_run("LSTM", LABELS, WEAK)], draws=50))
    assert words.headline.startswith("No winner")
    assert words.details[-1].startswith("chinese-bert frozen is better than LSTM by 24.5 points")


def test_a_win_is_called_a_win(make_run):
    runs = [make_run("A", LABELS, FROZEN), make_run("B", LABELS, WEAK)]
    words = verdict(compare_runs(runs, draws=50))
    assert words.headline == (
        "A (84.5%) is better than B (60.0%) by 24.5 points of accuracy (95% interval 22.6 to 26.4) "
        "on 2,000 test texts. One training run each: other seeds may change this."
    )
    assert words.details == [
        "A against B: 24.5 points (95% interval 22.6 to 26.4; exact McNemar test p < 0.001)."
    ]
    third = make_run("C", LABELS, answers((1000, True), (1000, False)))
    words = verdict(compare_runs([*runs, third], draws=50))
    assert "is better than all others, the best of them B (60.0%), by 24.5 points" in words.headline
    assert words.details[-1].startswith("A is better than C by 34.5 points (")


def test_equal_accuracy_says_what_the_set_could_have_shown(make_run):
    swapped = answers((100, False), (1690, True), (210, False))
    runs = [make_run("A", LABELS, FROZEN), make_run("B", LABELS, swapped)]
    words = verdict(compare_runs(runs, draws=50))
    assert "0.0 points apart" in words.headline
    assert "disagree (10.0% of the examples), this set shows true differences from about 2.0 " in (
        words.headline
    )
    same = [make_run("C", LABELS, FROZEN), make_run("D", LABELS, FROZEN)]
    assert (
        "are right on the same examples, every one"
        in verdict(compare_runs(same, draws=50)).headline
    )


def test_no_better_than_always_the_same_answer(make_run):
    labels = np.array([1] * 1900 + [0] * 100)
    always = np.ones(N, dtype=int)
    worse = always.copy()
    worse[:100] = 0
    runs = [make_run("A", labels, always), make_run("B", labels, worse)]
    report = build_report(compare_runs(runs, draws=50))
    assert report.verdict.details[-1] == (
        "Always answering 'positive' would score 95.0% on this test set: no method is shown to be "
        "better than that."
    )
    assert "- Labels in the test set: negative: 100, positive: 1,900.\n" in markdown_of(report)
    assert "48.7%" in markdown_of(report)  # macro F1 shows what accuracy hides


def sections(markdown: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", without_code(markdown), flags=re.MULTILINE)


def without_code(markdown: str) -> str:
    return re.sub(r"^ *(```+|~~~+).*?^ *\1", "", markdown, flags=re.MULTILINE | re.DOTALL)


def tables_after(markdown: str, heading: str) -> list[list[list[str]]]:
    """Cells of the tables under a heading of level 2, their ruler left out."""
    part = markdown.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    tables: list[list[list[str]]] = [[]]
    for line in part.splitlines():
        if not line.startswith("|"):
            tables += [[]] if tables[-1] else []
        elif not re.fullmatch(r"[|:-]+", line.replace(" ", "")):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            tables[-1].append([cell.strip() for cell in cells])
    return [table for table in tables if table]


def test_markdown_holds_everything_in_order(tie):
    markdown = markdown_of(build_report(compare_runs(tie, draws=200), title="Sentiment *demo*"))
    assert sections(markdown) == [
        "Sentiment \\*demo\\*",
        "What was compared",
        "Results",
        "How costs were measured",
        "Statistics",
        "Where they differ",
        "Confusions",
        "By class",
        "By length of the text in characters",
        "Examples",
        *[title for title in sections(markdown) if "right" in title or "wrong" in title],
        "Hardest for all",
        "Reproduce",
        "Data, hardware, versions and signatures",
    ]
    results, costs = tables_after(markdown, "Results")
    assert results[0] == ["method", "accuracy", "macro F1", "p against the best other (Holm)"]
    assert results[1][0] == "chinese-bert frozen"
    assert results[1][1].startswith("84.5% ")
    assert "[82.8, 86.0]" in markdown.replace("\\", "")
    assert results[1][3] == "0.87"
    assert costs[0] == ["method", "parameters", "training time", "tokens/s"]
    assert costs[1][1:] == ["117.7 M (21.4 M trained)", "214 s", "5,232"]
    assert costs[3][3] == "–"
    assert "**" not in "".join(cell for row in results for cell in row)
    assert "p is adjusted by Holm over all 3 pairs. Bold marks the highest accuracy" in markdown
    assert markdown.count("significantly better than every other (p below 0.05)") == 1
    assert markdown.count("Training time counts the training steps") == 1
    counts = tables_after(markdown, "Where they differ")[0]
    assert counts[1][2:] == ["1,528", "162", "158", "152"]
    (statistics,) = tables_after(markdown, "Statistics")
    assert statistics[1][0] == "chinese-bert frozen − chinese-bert fine-tuned"
    assert statistics[1][2:4] == ["0.87", "0.87"]
    reproduce = markdown.split("## Reproduce")[1]
    assert "accelerate launch recipes/bert_sentiment.py --method 'TF-IDF'" in reproduce
    for fact in ("c" * 64, "2.14.1", "fp32", "accuracy\\|n:2000"):
        assert fact in reproduce


def test_the_significantly_best_is_bold(make_run):
    runs = [make_run("A", LABELS, FROZEN), make_run("B", LABELS, WEAK)]
    markdown = markdown_of(build_report(compare_runs(runs, draws=50)))
    results = tables_after(markdown, "Results")[0]
    assert results[1][0] == "**A**"
    assert results[1][1].startswith("**84.5%**")
    assert results[2][0] == "B"
    assert results[0][-1] == "p against the best other"  # one pair: nothing was adjusted


def test_classes_and_lengths_are_told_apart(make_run):
    texts = ["长" * (1 + row % 40) for row in range(N)]
    only_positive = np.ones(N, dtype=int)
    runs = [
        make_run("A", LABELS, FROZEN, text=texts),
        make_run("B", LABELS, only_positive, text=texts),
    ]
    markdown = markdown_of(build_report(compare_runs(runs, draws=50)))
    _, by_class, by_length = tables_after(markdown, "Where they differ")[:3]
    assert by_class[0] == ["method", "negative (1,000 texts)", "positive (1,000 texts)"]
    assert by_class[1:] == [["A", "84.5%", "84.5%"], ["B", "0.0%", "100.0%"]]
    assert by_length[0][1:] == [
        f"{length} (500 texts)" for length in ("1–10", "11–20", "21–30", "31–40")
    ]


def test_a_forced_report_carries_a_banner(make_run):
    runs = [
        make_run("A", LABELS, FROZEN),
        make_run("B", LABELS, WEAK, {"data": {"hashes": {"test": "f" * 64}}}),
    ]
    comparison = compare_runs(runs, force=True, draws=50)
    markdown = markdown_of(build_report(comparison))
    top = markdown.split("A (84.5%) is better than")[0]
    assert "Warning:" in top
    assert "this comparison was forced" in top
    assert "content hashes" in top
    assert "All runs were tested on the same" not in markdown
    assert "forced" in printed(comparison).lower()
    headline = build_report(comparison).verdict.headline
    assert headline.startswith("Forced, not a fair comparison: A (84.5%)")


def test_what_others_wrote_cannot_break_the_markdown(make_run):
    nasty = "*a* | b <script>&amp; `c` [d](e) $x$ ~~f~~\n# g"
    n = 20
    labels = np.array([0, 1] * (n // 2))
    summary = {"data": {"label_names": ["a|b", "<c>"]}, "command": "x\n~~~\ny"}
    runs = [
        make_run(nasty, labels, labels, summary, folder="1", text=[nasty] * n),
        make_run("B", labels, 1 - labels, summary, folder="2", text=[nasty] * n),
    ]
    markdown = markdown_of(build_report(compare_runs(runs, draws=50), title=nasty))
    assert "<script>" not in without_code(markdown)
    assert sections(markdown)[1] == "What was compared"
    for heading in ("Results", "Where they differ", "Statistics"):
        for table in tables_after(markdown, heading):
            assert len({len(row) for row in table}) == 1


def test_examples_show_who_is_right_where(tie):
    comparison = compare_runs(tie, draws=50)
    groups = group_examples(comparison)
    a, b = "chinese-bert frozen", "chinese-bert fine-tuned"
    assert [(group.title, group.size) for group in groups] == [
        (f"{a} right, {b} wrong", 162),
        (f"{b} right, {a} wrong", 158),
        (f"{a} and {b} both wrong", 152),
        (f"{a} and {b} both right", 1528),
        ("Hardest for all", None),
    ]
    assert groups == group_examples(comparison)
    assert groups != group_examples(comparison, seed=1)
    assert groups[0].how == "3 of 162, drawn by chance (seed 0), not picked."
    for group, right in zip(groups, [(1, 0), (0, 1), (0, 0), (1, 1)], strict=False):
        assert len(group.examples) == 3
        for example in group.examples:
            row = int(example.id.split("-")[1])
            assert example.truth == ["negative", "positive"][LABELS[row]]
            given = [["negative", "positive"][p[row]] for p in (FROZEN, TUNED, CLASSIC)]
            assert [answer.text for answer in example.answers] == given
            assert [answer.right for answer in example.answers[:2]] == list(map(bool, right))
            assert all(answer.confidence == pytest.approx(0.8) for answer in example.answers)


def test_the_hardest_have_the_highest_loss(make_run):
    labels = np.array([0, 1] * 10)
    probabilities = np.full((20, 2), 0.5)
    probabilities[7] = [0.9, 0.1]  # label 1
    probabilities[4] = [0.2, 0.8]  # label 0
    predictions = np.where(np.isin(np.arange(20), (4, 7)), 1 - labels, labels)
    runs = [make_run(name, labels, predictions, probabilities=list(probabilities)) for name in "AB"]
    hardest = group_examples(compare_runs(runs, draws=50))[-1]
    assert hardest.title == "Hardest for all"
    assert [example.id for example in hardest.examples[:2]] == ["id-7", "id-4"]
    assert hardest.examples[0].answers[0].loss == pytest.approx(-np.log(0.1))


def test_long_texts_are_shortened(make_run):
    labels = np.array([0, 1, 1])
    runs = [make_run(name, labels, labels, text=["长" * 500] * 3) for name in "AB"]
    (both_right, hardest) = group_examples(compare_runs(runs, draws=50))
    assert both_right.title == "A and B both right"
    assert len(hardest.examples[0].shown) == LONGEST_TEXT
    assert hardest.examples[0].shown.endswith("长…")


def test_texts_can_be_left_out(tie, make_run):
    comparison = compare_runs(tie, draws=50)
    report = build_report(comparison, show_examples=False)
    for written in (markdown_of(report), json.dumps(as_json(report), ensure_ascii=False)):
        assert "房间" not in written
        assert "id-" not in written
        assert "left out of this report on request" in written
    bare = [make_run(name, LABELS, FROZEN, text=None) for name in "AB"]
    assert "recorded no test texts" in markdown_of(build_report(compare_runs(bare, draws=50)))


def test_learning_curve_has_a_picture_and_a_table(tie, make_run, tmp_path):
    changes = {
        "model": {"name": "model of TF-IDF", "method": "classic"},
        "data": {"train_examples": 500},
    }
    changes["command"] = "python classic.py --train-size 500"
    smaller = make_run("TF-IDF", LABELS, WEAK, changes, folder="smaller")
    comparison = compare_runs(tie, learning_curve=[smaller], draws=50)
    write_report(build_report(comparison), tmp_path / "out")
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    (table,) = tables_after(markdown, "Learning curve")
    assert table[0] == ["training examples", "TF-IDF"]
    assert [row[0] for row in table[1:]] == ["500", "2,000"]
    assert table[1][1].startswith("60.0% ")
    assert table[2][1].startswith("82.6% ")
    assert "python classic.py --train-size 500" in markdown
    assert (tmp_path / "out" / "learning_curve.svg").is_file()
    # A later report without a curve must not leave the old picture lying about.
    write_report(build_report(compare_runs(tie, draws=50)), tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {*PICTURES, "report.html", "report.json", "report.md"}


def test_document_is_strict_json_with_the_numbers_of_the_report(make_run):
    runs = [
        make_run("A", LABELS, FROZEN, {"training": {"loss": float("nan")}}),
        make_run("B", LABELS, TUNED),
    ]
    comparison = compare_runs(runs, draws=200)
    document = json.loads(json.dumps(as_json(build_report(comparison)), allow_nan=False))
    best = document["methods"][0]
    assert best["estimates"]["accuracy"]["value"] == 0.845
    assert best["estimates"]["accuracy"]["interval"]["method"] == "wilson 95%"
    assert best["values_by_seed"]["accuracy"] == {"42": 0.845}
    assert document["verdict"]["winner"] is None
    assert document["verdict"]["not_separated_from"] == ["B"]
    assert "scipy " in document["report_made_with"]["report made with"]
    assert best["runs"][0]["training"]["loss"] is None
    (pair,) = document["pairs"]
    found = comparison.pairs[0].differences["accuracy"]
    assert pair["differences"]["accuracy"]["p_examples"] == found.p_examples
    assert pair["differences"]["accuracy"]["test"] == "exact McNemar test"
    assert pair["mean_counts"]["only_first"] == 162
    assert document["verdict"]["headline"].startswith("No winner")
    assert len(document["examples"]) == 5
    assert document["measures"][0]["decides"]
    assert document["comparability"]["statements"][1] == (
        "Labels in the test set: negative: 1,000, positive: 1,000."
    )


def test_many_runs_show_the_pairs_with_the_best(make_run):
    runs = [
        make_run(str(i), LABELS, np.roll(FROZEN, i) if i else FROZEN, folder=f"r{i}")
        for i in range(0, 14, 2)
    ]
    markdown = markdown_of(build_report(compare_runs(runs, draws=50)))
    assert len(tables_after(markdown, "Where they differ")[0]) == 1 + 6
    assert "all 21 pairs are in report.json" in markdown


def printed(comparison, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    print_report(build_report(comparison), console)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_terminal_table(tie, width):
    text = printed(compare_runs(tie, draws=50), width)
    for word in ("84.5%", "[82.8, 86.0]", "117.7 M", "(21.4 M)", "0.87", "Holm over 3 pairs"):
        assert word in text
    assert "No winner in accuracy: this test set of 2,000 texts cannot separate" in " ".join(
        text.split()
    )
    assert max(len(line) for line in text.splitlines()) <= width


def parse(*words):
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return parser.parse_args([str(word) for word in words])


def test_the_command_writes_what_was_asked_for(tie, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runs = [run.relative_to(tmp_path) for run in tie]
    arguments = parse(*runs, "--output", tmp_path / "out", "--title", "演示", "--json", "a/b.json")
    assert command.run(arguments) == 0
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert markdown.startswith("# 演示\n")
    assert f"toolkit compare {' '.join(map(str, runs))} --output out --title '演示'" in markdown
    assert str(tmp_path) not in markdown
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report.pop("pictures") == PICTURES
    assert report == json.loads((tmp_path / "a" / "b.json").read_text(encoding="utf-8"))
    out = capsys.readouterr().out
    assert out.rstrip().endswith("report.html")
    assert "No winner" in out


def test_the_command_alone_writes_nothing(tie, tmp_path, monkeypatch):
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert command.run(parse(*tie)) == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_cannot_be_written(tie, tmp_path):
    (tmp_path / "file").write_text("")
    for option in ("--output", "--json"):
        with pytest.raises(UserError, match="cannot be written"):
            command.run(parse(*tie, option, tmp_path / "file" / "below"))


def test_comparing_does_not_load_torch(tie):
    code = (
        "import sys, argparse; from toolkit.commands import compare as c;"
        "p = argparse.ArgumentParser(); c.configure(p); c.run(p.parse_args(sys.argv[1:]));"
        "print(sorted({'torch', 'transformers', 'datasets', 'evaluate'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, tie)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (wording.points(0.01), "1.0 point"),
        (wording.points(-0.0123), "−1.2 points"),
        (wording.points(-0.00001), "0.0 points"),
        (wording.difference_interval(ACCURACY, Interval(-0.014, 0.017, "")), "−1.4 to 1.7"),
        (wording.advantage_brackets(ACCURACY, Interval(-0.014, 0.017, "")), "[−1.4, 1.7]"),
        (wording.advantage_brackets(PERPLEXITY, Interval(-3.0, 1.0, "")), "[−1.000, 3.000]"),
        (wording.percent(0.8455), "84.6%"),
        (wording.percent(0.8395), "84.0%"),
        (wording.tiny(6.6e-7), "6.6e-07"),
        (wording.tiny(0.0281), "0.028"),
        (wording.tiny(0.0), "0"),
        (wording.metric("highest validation entity_f1"), "highest validation entity F1"),
        (wording.plain(-0.0), "0.000"),
        (wording.plain(-3.4e-6), "0.000"),
        (wording.plain(6e-5), "6.000e−05"),
        (wording.plain(-0.02345), "−0.02345"),
        (wording.difference_interval(PERPLEXITY, Interval(-0.0, 0.0, "")), "0.000 to 0.000"),
        (wording.seconds(3459), "57 min 39 s"),
        (wording.value(ACCURACY, 0.8432), "84.3%"),
        (wording.brackets(ACCURACY, Interval(0.826, 0.8592, "")), "[82.6, 85.9]"),
        (wording.difference(ACCURACY, 0.0185), "1.9 points"),
        (wording.value(BLEU, 31.27), "31.3"),
        (wording.difference(BLEU, -0.84), "−0.8 points"),
        (wording.difference(BLEU, 1.0), "1.0 point"),
        (wording.value(PERPLEXITY, 484.21), "484.2"),
        (wording.value(PERPLEXITY, 12_345.6), "12,346"),
        (wording.value(PERPLEXITY, 1.5), "1.500"),
        (wording.value(PERPLEXITY, float("inf")), "infinite"),
        (wording.value(PERPLEXITY, float("nan")), "–"),
        (wording.difference(PERPLEXITY, -12.5), "−12.50"),
        (wording.advantage_interval(PERPLEXITY, Interval(-3.0, -1.0, "")), "1.000 to 3.000"),
        (wording.advantage_interval(ACCURACY, Interval(0.01, 0.03, "")), "1.0 to 3.0"),
        (wording.size(2**30 * 1.5), "1.50 GiB"),
        (wording.size(50 * 2**20), "50 MiB"),
        (wording.size(None), "–"),
        (wording.energy(7384.2), "7.4 kJ"),
        (wording.energy(312.4), "312 J"),
        (wording.operations(1.234e15), "1.2 PFLOP"),
        (wording.capitalised("macro F1"), "Macro F1"),
        (wording.p_value(0.0576), "0.058"),
        (wording.p_value(0.8213), "0.82"),
        (wording.p_equals(1e-9), "p < 0.001"),
        (wording.p_equals(0.05), "p = 0.050"),
        (wording.about(148_213), "150,000"),
        (wording.about(979), "980"),
        (wording.about(7), "7"),
        (wording.parameters(117_653_760), "117.7 M"),
        (wording.parameters(769), "769"),
        (wording.parameters(None), "–"),
        (wording.seconds(1.234), "1.2 s"),
        (wording.seconds(7384), "2 h 3 min"),
        (wording.rate(5231.7), "5,232"),
        (wording.listed(["A", "B", "C"]), "A, B and C"),
        (wording.listed(["A"]), "A"),
        (wording.shortened("a\n  b", 10), "a b"),
        (wording.shortened("abcdef", 4), "abc…"),
    ],
)
def test_wording(written, expected):
    assert written == expected


def test_the_distance_from_a_published_number(make_run):
    published = {
        "metric": "accuracy", "value": 0.9, "split": "validation", "dataset": "d",
        "setting": "ten times the labels", "source": "arXiv:0000.00000, table 1",
    }  # fmt: skip
    summary = {"published": published, "validation": {"accuracy": {"value": 0.87}}}
    other = {"published": published | {"metric": "bleu"}}
    runs = [make_run("A", LABELS, FROZEN, summary), make_run("B", LABELS, WEAK, other)]
    report = build_report(compare_runs(runs, draws=50))
    (found,) = report.published
    assert found.distance == pytest.approx(-0.03)
    row = tables_after(markdown_of(report), "Reproduce")[0][1]
    assert row == [
        "A", "validation", "87.0%", "90.0%", "−3.0 points", "ten times the labels",
        "arXiv:0000.00000, table 1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("104 s", "110 s", "104–110 s"),
        ("1,594", "1,680", "1,594–1,680"),
        ("69%", "72%", "69–72%"),
        ("1.78 GiB", "1.83 GiB", "1.78–1.83 GiB"),
        ("900 MiB", "1.02 GiB", "900 MiB–1.02 GiB"),
    ],
)
def test_a_range_names_its_unit_once(low, high, expected):
    assert _range(low, high) == expected


def test_titles_of_prediction_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a=b.csv", "ok.csv"):
        (tmp_path / name).write_text("id,prediction\n", encoding="utf-8")
    found = command._titled_files(["a=b.csv", "x=y=ok.csv"])
    assert {title: str(file) for title, file in found.items()} == {
        "a=b": "a=b.csv", "x=y": "ok.csv",
    }  # fmt: skip
    with pytest.raises(UserError, match="title before '=' is empty"):
        command._titled_files(["=ok.csv"])
    with pytest.raises(UserError, match="a run directory, expected a file"):
        command._titled_files([str(tmp_path)])


def test_runs_may_be_given_titles(tie, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runs = [run.relative_to(tmp_path) for run in tie]
    arguments = parse(f"ours={runs[0]}", runs[1], f"a=b={runs[2]}", "--json", "x.json")
    assert command.run(arguments) == 0
    document = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    titles = [method["title"] for method in document["methods"]]
    assert titles == ["chinese-bert frozen", "ours", "a=b"]
    assert f"toolkit compare ours={runs[0]} {runs[1]} a=b={runs[2]}" in document["command"]


def implementations(make_run, ours, theirs, architecture="ViTForImageClassification"):
    """Two runs that counted so many operations."""
    runs = [
        make_run(
            title, LABELS, TUNED, {"model": {"architecture": name}, "training": {"flops": flops}},
            config={"method": "full", "implementation": title},
        )
        for title, name, flops in (
            ("scratch", f"Scratch{architecture}", ours), ("hf", architecture, theirs)
        )
    ]  # fmt: skip
    return markdown_of(build_report(compare_runs(runs, draws=20)))


SAME_ANSWERS = "the same answers from fewer operations"


def test_operations_that_an_implementation_spares_are_explained(make_run):
    markdown = implementations(make_run, 857.8e9, 973.6e9)
    costs = markdown.split("| computed |")[1].split("\n## ")[0]
    assert costs.index(SAME_ANSWERS) < costs.index("How costs were measured")
    assert "the last layer for the class token alone" in costs


@pytest.mark.parametrize(
    ("ours", "theirs", "architecture"),
    [
        (900e9, 900e9, "ViTForImageClassification"),  # dropout was drawn: ours computes all
        (800e9, 900e9, "GPT2LMHeadModel"),  # not for this reason
        (800e9, None, "ViTForImageClassification"),
    ],
)
def test_nothing_is_explained_that_is_not_so(make_run, ours, theirs, architecture):
    assert SAME_ANSWERS not in implementations(make_run, ours, theirs, architecture)


def test_classes_of_xlm_roberta_are_told_by_their_name(make_run):
    runs = [
        make_run(title, LABELS, TUNED,
                 {"model": {"architecture": title}, "training": {"flops": flops}})
        for title, flops in (("ScratchRobertaForSequenceClassification", 8e9),
                             ("XLMRobertaForSequenceClassification", 9e9))
    ]  # fmt: skip
    assert "first token alone" in markdown_of(build_report(compare_runs(runs, draws=20)))


def test_settings_of_training_are_none_of_a_regression(make_run):
    settings = {"train": {"epochs": 3, "learning_rate": 2e-5}}
    runs = [
        make_run("LSTM", LABELS, TUNED, config={**settings, "embedding_size": 128}),
        make_run("TF-IDF", LABELS, FROZEN, {"training": {"penalty": 3.0}},
                 config={"train": {"epochs": 5, "learning_rate": 1e-3}, "ngrams": 3}),
    ]  # fmt: skip
    document = as_json(build_report(compare_runs(runs, draws=20)))
    assert document["comparability"]["settings_that_differ"] == {
        "train.epochs": {"LSTM": 3},
        "train.learning_rate": {"LSTM": 2e-5},
        "embedding_size": {"LSTM": 128},
        "ngrams": {"TF-IDF": 3},
    }


def test_settings_with_different_values_come_before_those_of_some_methods(make_run):
    runs = [
        make_run("BERT", LABELS, TUNED, config={"rank": 8, "dropout": 0.1, "epochs": 3}),
        make_run("LSTM", LABELS, FROZEN, config={"layers": 2, "dropout": 0.5, "epochs": 3}),
    ]
    document = as_json(build_report(compare_runs(runs, draws=20)))
    assert list(document["comparability"]["settings_that_differ"].items()) == [
        ("dropout", {"BERT": 0.1, "LSTM": 0.5}),
        ("layers", {"LSTM": 2}),  # the LSTM is the better one, so it comes first
        ("rank", {"BERT": 8}),
    ]
