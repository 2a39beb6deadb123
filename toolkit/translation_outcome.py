"""The end of a translation run: test once, write translations and scores, show some of them."""

from __future__ import annotations

from typing import Any

import pyarrow
from rich.markup import escape
from rich.table import Table

from toolkit.batching import Collate
from toolkit.console import console
from toolkit.data.translation import TranslationData
from toolkit.evaluation import Outputs
from toolkit.outcome import describe_training, draw_training
from toolkit.run import Run, describe_run
from toolkit.run_predictions import predict_rows, save_predictions
from toolkit.run_readme import Findings, how_trained, markdown_table, run_readme
from toolkit.text_metrics import bleu, chrf, exact_match, matches, sentence_scores
from toolkit.training.engine import FitResult
from toolkit.translation import Translation, decode

SCORES = {
    "bleu": "BLEU",
    "bleu_lowercase": "BLEU, lower case",
    "chrf": "chrF",
    "exact_match": "exact match",
}


def translate_test(
    run: Run[Any],
    result: FitResult,
    data: TranslationData,
    objective: Translation,
    collate: Collate,
) -> Outputs:
    """Translate every test source once; outputs of `Translation` in the order of the rows."""
    compute = objective.translating(len(data.test)).outputs
    return predict_rows(run, "translating the test set", result.model, data.test, compute, collate)


def finish_translation(
    run: Run[Any],
    result: FitResult,
    data: TranslationData,
    outputs: Outputs,
    tokenizer: Any,
    model: dict[str, Any],
    *,
    average: dict[str, Any] | None = None,
    samples: int = 5,
) -> dict[str, Any]:
    """Write translations and summary, print scores and samples, and complete the run.

    Args:
        outputs: of `translate_test`.
        model: the `model` section of the summary.
        average: what `toolkit.training.averaging` recorded.
        samples: translations to print.

    Returns:
        The summary (schema version 1).
    """
    hypotheses = decode(tokenizer, outputs["translation"])
    test = _score(data, hypotheses, outputs)
    title = run.config.title or f"{model['name']}, {model['method']}"
    metrics = result.state.best_metrics
    if average is not None and average["taken"]:
        metrics = average["average"]
    summary = {
        **describe_run(run, title, "translation", data.summary),
        "model": model,
        "data": {
            "dataset": data.summary["source"],
            "source_language": data.source_language,
            "target_language": data.target_language,
            **{f"{s}_examples": len(getattr(data, s)) for s in ("train", "validation", "test")},
            "hashes": data.summary["sha256"],
        },
        "training": describe_training(run, result) | {"average": average},
        "validation": {name: {"value": value} for name, value in metrics.items()},
        "test": test,
    }
    run.write_json("data.json", data.summary)
    if run.accelerator.is_main_process:
        write_translations(run, data, hypotheses, outputs)
        shown = "bleu" if "bleu" in result.state.best_metrics else "token_accuracy"
        draw_training(run, result.state.best_step, shown)
        run.write_text("README.md", _readme(summary))
        _print(run, summary, data, hypotheses, samples)
    run.complete(summary)
    return summary


def write_translations(
    run: Run[Any], data: TranslationData, hypotheses: list[str], outputs: Outputs
) -> None:
    """`predictions/test.parquet`: id, source, reference, hypothesis and scores of each sentence."""
    references = data.test["target"][:]
    scores = sentence_scores(hypotheses, references, data.target_language)
    table = pyarrow.table(
        {
            "id": data.test["id"][:],
            "source": data.test["source"][:],
            "reference": references,
            "hypothesis": hypotheses,
            "exact_match": matches(hypotheses, references),
            **scores,
            "loss": pyarrow.array((outputs["loss"] / outputs["tokens"]).astype(float)),
        }
    )
    save_predictions(run, "test", table)


def _score(data: TranslationData, hypotheses: list[str], outputs: Outputs) -> dict[str, Any]:
    references, language = data.test["target"][:], data.target_language
    tokens = int(outputs["tokens"].sum())
    return {
        "bleu": bleu(hypotheses, references, language),
        # Published numbers are often of tokenised, lower-cased text; this is the nearest to them
        # that does not depend on anybody's tokeniser.
        "bleu_lowercase": bleu(hypotheses, references, language, lowercase=True),
        "chrf": chrf(hypotheses, references),
        "exact_match": exact_match(hypotheses, references),
        "loss": {"value": float(outputs["loss"].sum() / tokens), "n": tokens},
        "token_accuracy": {"value": float(outputs["correct"].sum() / tokens), "n": tokens},
    }


def _shown(name: str, score: dict[str, Any]) -> tuple[str, str]:
    form = ".1%" if name == "exact_match" else ".2f"
    low, high = score["interval"]
    return f"{score['value']:{form}}", f"{low:{form}}-{high:{form}}"


def _print(
    run: Run[Any],
    summary: dict[str, Any],
    data: TranslationData,
    hypotheses: list[str],
    samples: int,
) -> None:
    test = summary["test"]
    table = Table(title=f"{summary['title']}: {run.directory}", title_justify="left")
    for column in ("on test", "value", "95% interval"):
        table.add_column(column, justify="left" if column == "on test" else "right")
    for name, label in SCORES.items():
        table.add_row(label, *_shown(name, test[name]))
    console.print(table)
    console.print(escape(test["bleu"]["signature"]), soft_wrap=True)
    for row in range(min(samples, len(hypotheses))):
        example = data.test[row * len(hypotheses) // samples]
        made = hypotheses[row * len(hypotheses) // samples]
        console.print(f"\n  source      {escape(example['source'])}", soft_wrap=True)
        console.print(f"  translation {escape(made)}", soft_wrap=True)
        console.print(f"  reference   {escape(example['target'])}", soft_wrap=True)


_USE = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("model")
model = AutoModelForSeq2SeqLM.from_pretrained("model")
batch = tokenizer([{text!r}], return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""


def _readme(summary: dict[str, Any]) -> str:
    use = _USE.format(text=f"{summary['model']['prefix']}...")
    findings = translation_findings(summary)
    return run_readme(summary, findings, use=use, predictions="every translation")


def translation_findings(summary: dict[str, Any]) -> Findings:
    """What was trained on what, and how near its translations are to the references."""
    model, data, test = summary["model"], summary["data"], summary["test"]
    training = summary["training"]
    average = training["average"]
    averaged = ""
    if average is not None and average["taken"]:
        averaged = f" Its weights are the mean of the checkpoints {average['steps']}."
    return Findings(
        how_trained(
            model, f"{data['train_examples']:,} pairs of {data['dataset']}", training["steps"]
        )
        + f", from {data['source_language']} to {data['target_language']}.{averaged}",
        markdown_table(
            (f"on {data['test_examples']:,} test pairs", "value", "95% interval", "signature"),
            [
                [label, *_shown(name, test[name]), f"`{test[name]['signature'].replace('|', ' ')}`"]
                for name, label in SCORES.items()
            ],
        ),
    )
