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
from toolkit.compare import compare_runs
from toolkit.errors import UserError
from toolkit.report import (
    as_document,
    build_report,
    print_comparison,
    render_markdown,
    wording,
    write_report,
)
from toolkit.report.examples import LONGEST_TEXT, draw_examples
from toolkit.report.markdown import escape
from toolkit.report.verdict import verdict
from toolkit.stats import Interval

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


def test_a_tie_is_called_a_tie(tie):
    words = verdict(compare_runs(tie, draws=50))
    assert words.headline.startswith("A tie: this test set of 2,000 examples cannot separate ")
    assert (
        "chinese-bert frozen (84.5%) from chinese-bert fine-tuned (84.3%) and TF-IDF (82.6%)."
        in (words.headline)
    )
    assert "0.2 points apart (95% interval −1.6 to 2.0)" in words.headline
    assert re.search(r"would take about \d\d\d,000 test examples", words.headline)
    first, second = words.details
    assert "exact McNemar p = 0.87, after Holm's adjustment over 3 pairs p = 0.87" in first
    # 195 against 157 discordant pairs: below 0.05 alone, and not enough among three pairs.
    alone = binomtest(195, 195 + 157).pvalue
    assert alone < 0.05
    assert f"p = {alone:.3f}, after Holm's adjustment over 3 pairs p = 0.097" in second
    assert re.search(r"would take about \d,\d00 test examples", second)
    assert not any("is better than" in line for line in [words.headline, *words.details])


def test_the_tied_are_still_better_than_the_weak(tie, make_run):
    words = verdict(compare_runs([*tie, make_run("LSTM", LABELS, WEAK)], draws=50))
    assert words.headline.startswith("A tie")
    assert words.details[-1].startswith("chinese-bert frozen is better than LSTM by 24.5 points")


def test_a_win_is_called_a_win(make_run):
    runs = [make_run("A", LABELS, FROZEN), make_run("B", LABELS, WEAK)]
    words = verdict(compare_runs(runs, draws=50))
    assert words.headline == (
        "A (84.5%) is better than B (60.0%) by 24.5 points of accuracy (95% interval 22.6 to 26.4) "
        "on 2,000 test examples."
    )
    assert words.details == [
        "A against B: 24.5 points (95% interval 22.6 to 26.4; exact McNemar p < 0.001)."
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
    assert "disagree too seldom" in verdict(compare_runs(same, draws=50)).headline


def test_no_better_than_always_the_same_answer(make_run):
    labels = np.array([1] * 1900 + [0] * 100)
    always = np.ones(N, dtype=int)
    worse = always.copy()
    worse[:100] = 0
    runs = [make_run("A", labels, always), make_run("B", labels, worse)]
    report = build_report(compare_runs(runs, draws=50))
    assert report.verdict.details[-1] == (
        "Always answering 'positive' would score 95.0% on this test set: no run is shown to be "
        "better than that."
    )
    assert "Labels in the test set: negative 100 and positive 1,900." in report.comparability[1]
    assert "48.7% [" in render_markdown(report)  # macro F1 shows what accuracy hides


def sections(markdown: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", markdown, flags=re.MULTILINE)


def table_after(markdown: str, heading: str) -> list[list[str]]:
    """Cells of the first table under a heading; a row with another width would show here."""
    part = markdown.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_markdown_holds_everything_in_order(tie):
    markdown = render_markdown(build_report(compare_runs(tie, draws=200), title="Sentiment *demo*"))
    assert sections(markdown) == [
        "Sentiment \\*demo\\*",
        "What was compared",
        "Results",
        "Where they differ",
        "Statistics",
        "Examples",
        "Reproduce",
    ]
    results = table_after(markdown, "Results")
    assert results[0][-1] == "p against the best other (Holm)"
    assert {len(row) for row in results} == {7}
    assert results[2][0] == "chinese-bert frozen"
    assert results[2][1].startswith("84.5% [8")
    assert results[2][3:] == ["117.7 M (21.4 M)", "214 s", "5,232", "0.87"]
    assert results[4][5] == "–"
    assert "**" not in "".join(cell for row in results for cell in row)
    assert "p is adjusted by Holm over all 3 pairs. Bold marks the best accuracy" in markdown
    assert markdown.count("significantly better than every other (p below 0.05)") == 1
    assert markdown.count("- Training time counts the training steps") == 1
    assert table_after(markdown, "Where they differ")[2][2:] == ["1,528", "162", "158", "152"]
    statistics = table_after(markdown, "Statistics")
    assert statistics[2][0] == "chinese-bert frozen − chinese-bert fine-tuned"
    assert statistics[2][2:4] == ["0.87", "0.87"]
    reproduce = markdown.split("## Reproduce")[1]
    assert "accelerate launch recipes/bert_sentiment.py --method 'TF-IDF'" in reproduce
    for fact in ("c" * 64, "2.14.1", "fp32", "accuracy\\|n:2000"):
        assert fact in reproduce


def test_the_significantly_best_is_bold(make_run):
    runs = [make_run("A", LABELS, FROZEN), make_run("B", LABELS, WEAK)]
    markdown = render_markdown(build_report(compare_runs(runs, draws=50)))
    results = table_after(markdown, "Results")
    assert results[2][0] == "**A**"
    assert results[2][1].startswith("**84.5%")
    assert results[3][0] == "B"
    assert results[0][-1] == "p against the best other"  # one pair: nothing was adjusted
    assert "\n\nBold marks the best accuracy, and only when it is significantly" in markdown


def test_a_forced_report_carries_a_banner(make_run):
    runs = [
        make_run("A", LABELS, FROZEN),
        make_run("B", LABELS, WEAK, {"data": {"hashes": {"test": "f" * 64}}}),
    ]
    comparison = compare_runs(runs, force=True, draws=50)
    markdown = render_markdown(build_report(comparison))
    top = markdown.split("\n\n")[1]
    assert top.startswith("> **Warning: this comparison was forced")
    assert "content hashes" in top
    assert "All runs were tested on the same" not in markdown
    assert "forced" in printed(comparison).lower()


def test_what_others_wrote_cannot_break_the_markdown(make_run):
    nasty = "*a* | b <script>&amp; `c` [d](e) $x$ ~~f~~\n# g"
    n = 20
    labels = np.array([0, 1] * (n // 2))
    summary = {"data": {"label_names": ["a|b", "<c>"]}, "command": "x\n~~~\ny"}
    runs = [
        make_run(nasty, labels, labels, summary, folder="1", text=[nasty] * n),
        make_run("B", labels, 1 - labels, summary, folder="2", text=[nasty] * n),
    ]
    markdown = render_markdown(build_report(compare_runs(runs, draws=50), title=nasty))
    assert "<script>" not in markdown
    assert sections(markdown)[1] == "What was compared"
    for heading in ("Results", "Where they differ", "Statistics"):
        assert len({len(row) for row in table_after(markdown, heading)}) == 1
    assert markdown.count("~~~\n") == 4
    assert escape(nasty) == (
        r"\*a\* \| b &lt;script&gt;&amp;amp; \`c\` \[d\](e) \$x\$ \~\~f\~\~ \# g"
    )


def test_examples_are_drawn_by_chance_with_some_disagreement(tie):
    comparison = compare_runs(tie, draws=50)
    draw = draw_examples(comparison)
    assert len({example.id for example in draw.examples}) == 5
    assert sum(len({a.label for a in example.answers}) > 1 for example in draw.examples) >= 2
    assert draw == draw_examples(comparison)
    assert draw != draw_examples(comparison, seed=1)
    differ = sum(len(set(row)) > 1 for row in zip(FROZEN, TUNED, CLASSIC, strict=True))
    assert f"2 from the {differ:,} examples on which the runs give different answers" in draw.how
    for example in draw.examples:
        row = int(example.id.split("-")[1])
        assert example.label == ["negative", "positive"][LABELS[row]]
        given = [["negative", "positive"][p[row]] for p in (FROZEN, TUNED, CLASSIC)]
        assert [answer.label for answer in example.answers] == given
        assert [answer.right for answer in example.answers] == [g == example.label for g in given]
        assert all(answer.confidence == pytest.approx(0.8) for answer in example.answers)


def test_examples_of_small_sets_and_of_runs_that_agree(make_run):
    labels = np.array([0, 1, 1])
    runs = [make_run(name, labels, labels, text=["长" * 500] * 3) for name in "AB"]
    draw = draw_examples(compare_runs(runs, draws=50))
    assert len(draw.examples) == 3
    assert "0 from the 0 examples" in draw.how
    assert len(draw.examples[0].shown) == LONGEST_TEXT
    assert draw.examples[0].shown.endswith("长…")


def test_texts_can_be_left_out(tie, make_run):
    comparison = compare_runs(tie, draws=50)
    report = build_report(comparison, show_examples=False)
    for written in (render_markdown(report), json.dumps(as_document(report), ensure_ascii=False)):
        assert "房间" not in written
        assert "id-" not in written
        assert "left out of this report on request" in written
    bare = [make_run(name, LABELS, FROZEN, text=None) for name in "AB"]
    assert "recorded no test texts" in render_markdown(build_report(compare_runs(bare, draws=50)))


def test_learning_curve_has_a_picture_and_a_table(tie, make_run, tmp_path):
    changes = {
        "model": {"name": "model of TF-IDF", "method": "classic"},
        "data": {"train_examples": 500},
    }
    changes["command"] = "python classic.py --train-size 500"
    smaller = make_run("TF-IDF", LABELS, WEAK, changes, folder="smaller")
    comparison = compare_runs(tie, learning_curve=[smaller], draws=50)
    path = write_report(build_report(comparison), tmp_path / "out")
    table = table_after(path.read_text(encoding="utf-8"), "Learning curve")
    assert table[0] == ["training examples", "TF-IDF"]
    assert [row[0] for row in table[2:]] == ["500", "2,000"]
    assert table[2][1].startswith("60.0% [")
    assert table[3][1].startswith("82.6% [")
    assert "python classic.py --train-size 500" in path.read_text(encoding="utf-8")
    assert (tmp_path / "out" / "learning_curve.svg").is_file()
    # A later report without a curve must not leave the old picture lying about.
    write_report(build_report(compare_runs(tie, draws=50)), tmp_path / "out")
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["accuracy.svg", "report.json", "report.md"]


def test_document_is_strict_json_with_the_numbers_of_the_report(make_run):
    runs = [
        make_run("A", LABELS, FROZEN, {"training": {"loss": float("nan")}}),
        make_run("B", LABELS, TUNED),
    ]
    comparison = compare_runs(runs, draws=200)
    document = json.loads(json.dumps(as_document(build_report(comparison)), allow_nan=False))
    assert document["runs"][0]["accuracy"]["value"] == 0.845
    assert document["runs"][0]["training"]["loss"] is None
    assert document["pairs"][0]["p_mcnemar_exact"] == comparison.pairs[0].p_value
    assert document["pairs"][0]["counts"]["only_first_right"] == 162
    assert document["verdict"]["headline"].startswith("A tie")
    assert len(document["examples"]["examples"]) == 5
    assert document["test_set"]["label_counts"] == {"negative": 1000, "positive": 1000}


def test_many_runs_show_the_pairs_with_the_best(make_run):
    runs = [
        make_run(str(i), LABELS, np.roll(FROZEN, i) if i else FROZEN, folder=f"r{i}")
        for i in range(0, 14, 2)
    ]
    markdown = render_markdown(build_report(compare_runs(runs, draws=50)))
    assert len(table_after(markdown, "Where they differ")) == 2 + 6
    assert "all 21 pairs are in report.json" in markdown


def printed(comparison, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    print_comparison(comparison, console)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_terminal_table(tie, width):
    text = printed(compare_runs(tie, draws=50), width)
    for word in ("84.5%", "[82.8, 86.0]", "117.7 M", "(21.4 M)", "0.87", "Holm over 3 pairs"):
        assert word in text
    assert "A tie: this test set of 2,000 examples cannot separate" in " ".join(text.split())
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
    assert report == json.loads((tmp_path / "a" / "b.json").read_text(encoding="utf-8"))
    out = capsys.readouterr().out
    assert out.rstrip().endswith("report.md")
    assert "A tie" in out


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
        (wording.interval_in_points(Interval(-0.014, 0.017, "")), "−1.4 to 1.7"),
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
