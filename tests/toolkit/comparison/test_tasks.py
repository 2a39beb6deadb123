"""Runs of other tasks than classification, from their files to the report."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from toolkit.comparison.compare import compare_runs
from toolkit.report import as_blocks, as_json, build_report
from toolkit.report.markdown_blocks import render_markdown
from toolkit.text_metrics import bleu

N = 60


@pytest.fixture
def write_run(tmp_path):
    """`write_run(name, task, columns, measured, **data)` -> run directory."""

    def write(name, task, columns, measured, **data):
        run = tmp_path / name
        (run / "predictions").mkdir(parents=True)
        table = {"id": [f"id-{row}" for row in range(len(next(iter(columns.values()))))]} | columns
        pyarrow.parquet.write_table(pyarrow.table(table), run / "predictions" / "test.parquet")
        summary = {
            "schema_version": 1, "title": name, "task": task, "status": "complete", "seed": 0,
            "run_id": name, "model": {}, "data": {"dataset": "d", **data}, "training": {},
            "test": measured, "environment": {"device": "cpu"},
        }  # fmt: skip
        (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
        return run

    return write


def written(comparison):
    report = build_report(comparison)
    json.dumps(as_json(report), allow_nan=False)
    return render_markdown(as_blocks(report))


def translations(write_run, name, share, seed):
    """So many words right, the others wrong, drawn by chance."""
    rng = np.random.default_rng(seed)
    references = [f"the {row} cats of row {row} sat on a mat and slept" for row in range(N)]
    hypotheses = [
        " ".join(word if rng.random() < share else "dog" for word in text.split())
        for text in references
    ]
    columns = {"source": ["源" * (1 + row % 7) for row in range(N)], "reference": references,
               "hypothesis": hypotheses}  # fmt: skip
    measured = {"bleu": bleu(hypotheses, references, "en", draws=1)}
    run = write_run(name, "translation", columns, measured, target_language="en")
    return run, hypotheses, references


def test_translations_and_the_p_value_of_sacrebleu(write_run):
    a, ours, references = translations(write_run, "A", 0.85, 1)
    b, theirs, _ = translations(write_run, "B", 0.80, 2)
    comparison = compare_runs([a, b], draws=300)
    best, _ = comparison.rows
    assert best.title == "A"
    assert best.estimates["bleu"].value == pytest.approx(
        BLEU().corpus_score(ours, [references]).score
    )
    _, results = PairedTest(
        [("B", theirs), ("A", ours)], {"BLEU": BLEU()}, [references], test_type="bs",
        n_samples=1000,
    )()  # fmt: skip
    expected = next(value for name, value in results.items() if name.startswith("BLEU"))[1].p_value
    found = comparison.pairs[0].deciding
    assert found.p_sacrebleu == pytest.approx(expected)
    assert found.p_value == found.p_examples >= found.p_sacrebleu
    markdown = written(comparison)
    assert "(sacrebleu)" in markdown
    assert "By length of the source" in markdown
    assert "A right, B wrong" in markdown


def answers(write_run, name, right):
    """Three questions about each of 20 texts; all three right or wrong together."""
    exact = np.repeat(right, 3).astype(float)
    columns = {
        "question": [f"问题 {row}？" for row in range(N)],
        "answers": [[f"answer {row}"] for row in range(N)],
        "prediction": [f"answer {row}" if hit else "no" for row, hit in enumerate(exact)],
        "exact_match": exact, "f1": exact,
        "context_hash": [str(row // 3) for row in range(N)],
    }  # fmt: skip
    measured = {key: {"value": float(exact.mean())} for key in ("f1", "exact_match")}
    return write_run(name, "question-answering", columns, measured, language="en")


def test_questions_about_one_text_are_drawn_together(write_run):
    a = answers(write_run, "A", np.arange(20) < 15)
    b = answers(write_run, "B", np.arange(20) < 10)
    comparison = compare_runs([a, b], draws=2000)
    estimate = comparison.rows[0].estimates["exact_match"]
    # 20 texts, not 60 questions: neither Wilson's interval nor McNemar's test.
    assert estimate.standard_error == pytest.approx(np.sqrt(0.75 * 0.25 / 20), rel=0.1)
    assert estimate.interval.method == "percentile bootstrap 95%"
    difference = comparison.pairs[0].differences["exact_match"]
    assert difference.test.startswith("paired bootstrap over ")
    assert not difference.test.endswith("examples")
    markdown = written(comparison)
    assert "McNemar" not in markdown
    assert "Wilson" not in markdown


def test_somebody_elses_predictions_are_compared_and_nothing_is_claimed_of_them(make_run, tmp_path):
    labels = np.array([0, 1] * 100)
    ours = make_run("ours", labels, np.where(np.arange(200) < 180, labels, 1 - labels))
    names = ["negative", "positive"]
    answers = np.where(np.arange(200) < 120, labels, 1 - labels)
    rows = "".join(f"id-{row},{names[answer]}\n" for row, answer in enumerate(answers))
    file = tmp_path / "theirs.csv"
    file.write_text("id,prediction\n" + rows, encoding="utf-8")
    comparison = compare_runs([ours], predictions={"theirs": file}, draws=200)
    assert [row.title for row in comparison.rows] == ["ours", "theirs"]
    assert comparison.rows[1].estimates["accuracy"].value == 0.6
    (caution,) = comparison.cautions
    assert caution.startswith("theirs is a file of predictions for the same examples.")
    markdown = written(comparison)
    assert "The runs of the toolkit were tested on the same 200 examples" in markdown
    assert "file of predictions theirs.csv, SHA-256 " in markdown
    assert "(– trained)" not in markdown


def test_all_seeds_answers_are_shown(make_run):
    labels = np.array([0, 1] * 20)
    runs = []
    for seed in range(3):
        wrong = np.arange(40) < (4 if seed < 2 else 0)
        config = {"seed": seed, "method": "A"}
        predictions = np.where(wrong, 1 - labels, labels)
        runs.append(make_run("A", labels, predictions, {"seed": seed}, f"A-{seed}", config))
    runs.append(make_run("B", labels, np.where(np.arange(40) < 9, 1 - labels, labels)))
    report = build_report(compare_runs(runs, draws=50))
    both_wrong = next(group for group in report.examples if "both wrong" in group.title)
    assert both_wrong.title == "A and B both wrong"
    row = int(both_wrong.examples[0].id.removeprefix("id-"))
    true, other = (["negative", "positive"][i] for i in (labels[row], 1 - labels[row]))
    answer = both_wrong.examples[0].answers[0]
    assert (answer.text, answer.right) == (f"{other} (2) · {true}", False)
