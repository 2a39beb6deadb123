"""The metadata of a model card: what the Hub filters, links and shows beside it."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.files import data_suffix
from toolkit.demo.chinese_bert import HUB_NAME as CHINESE_BERT_HUB_NAME
from toolkit.demo.chinese_bert import NAME as CHINESE_BERT
from toolkit.network import is_hub_name
from toolkit.sharing.shareable import Shareable

# Key in the summary -> the Hub's name of the metric, and ours of what was measured.
_METRICS = {
    "accuracy": ("accuracy", "Accuracy"),
    "macro_f1": ("f1", "Macro F1"),
    "entity_f1": ("f1", "Entity F1"),
    "precision": ("precision", "Entity precision"),
    "recall": ("recall", "Entity recall"),
    "exact_match": ("exact_match", "Exact match"),
    "f1": ("f1", "F1"),
    "bleu": ("sacrebleu", "BLEU"),
    "chrf": ("chrf", "chrF"),
    "perplexity": ("perplexity", "Perplexity per token"),
    "bits_per_byte": ("bits_per_byte", "Bits per byte"),
    "masked_accuracy": ("accuracy", "Masked tokens guessed right"),
    "next_sentence_accuracy": ("accuracy", "Next sentence told from a wrong one"),
}
_TASKS = {"pretraining": "fill-mask", "language-modeling": "text-generation"}
_SCRIPTS = {"zh": r"[\u4e00-\u9fff]", "ja": r"[\u3040-\u30ff]", "ko": r"[\uac00-\ud7af]"}
_BY_SCRIPT = 0.3  # share of the letters


def card_data(
    summary: dict[str, Any],
    shareable: Shareable,
    repo: str,
    *,
    languages: Sequence[str],
    license: str | None,
) -> Any:
    """`huggingface_hub.ModelCardData` of a run; what is not known is left out.

    Args:
        summary: schema version 1, without local paths.
        shareable: what is published.
        repo: "user/name" on the Hub.
        languages: codes (ISO 639) of what the model reads or writes.
        license: the Hub's name of one.
    """
    from huggingface_hub import ModelCardData

    model, data = summary["model"], summary["data"]
    dataset = str(data["dataset"])
    results, base = eval_results(summary), base_model_of(shareable, summary)
    tags = ["scratch-models-toolkit", f"method:{model['method']}"]
    if shareable.library == "peft":
        tags.append("lora")
    return ModelCardData(
        language=_one_or_several(languages),
        license=license,
        library_name=shareable.library,
        pipeline_tag=shareable.pipeline_tag,
        base_model=base,
        base_model_relation=_relation(shareable, base),
        datasets=[dataset.partition("@")[0]] if is_hub_data(dataset) else None,
        metrics=sorted({result.metric_type for result in results}) or None,
        tags=tags,
        # Without results a name would make an empty model-index, which the Hub refuses.
        model_name=repo.rpartition("/")[2] if results else None,
        eval_results=results or None,
    )


def eval_results(summary: dict[str, Any]) -> list[Any]:
    """`huggingface_hub.EvalResult` of every measure of the test set, with its 95 % interval.

    The Hub's specification has no place of its own for intervals; a metric's `args` take any keys
    (hub-docs, modelcard.md). Where there was no test set, those of validation; what is not finite
    is left out.
    """
    from huggingface_hub import EvalResult

    split = "test" if isinstance(summary.get("test"), dict) else "validation"
    task, dataset = str(summary["task"]), str(summary["data"]["dataset"])
    found = []
    for key, measured in summary[split].items():
        value = plain_number(measured["value"] if _is_metric(measured) else measured)
        if key not in _METRICS or value is None:
            continue
        kind, name = _METRICS[key]
        found.append(
            EvalResult(
                task_type=_TASKS.get(task, task),
                task_name=task.replace("-", " ").capitalize(),
                dataset_type=dataset,
                dataset_name=dataset,
                dataset_split=split,
                metric_type=kind,
                metric_name=name,
                metric_value=value,
                metric_args=_how_measured(measured) or None,
            )
        )
    return found


def plain_number(value: Any) -> float | int | None:
    """A number that YAML has, of Python's or of numpy or torch; None where it is not finite."""
    if isinstance(value, bool) or value is None:
        return None
    if not isinstance(value, numbers.Number):
        try:
            value = np.asarray(value).item()
        except (TypeError, ValueError):  # a mapping, a text, several numbers
            return None
        if not isinstance(value, numbers.Number) or isinstance(value, bool):
            return None
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)  # type: ignore[arg-type]  # of numpy: a float64 is a Number
    return number if math.isfinite(number) else None


def base_model_of(shareable: Shareable, summary: dict[str, Any]) -> str | None:
    """The Hub's name of the model it was made from; None where there is none.

    The embedded Chinese BERT is there under its own name.
    """
    if summary.get("model", {}).get("name") == CHINESE_BERT:
        return CHINESE_BERT_HUB_NAME
    return shareable.base_model


def is_hub_data(name: str) -> bool:
    """Whether a run's data set came from the Hub, by its name."""
    is_file = data_suffix(Path(name)) is not None or name.endswith((".txt", ".md"))
    # As for `datasets`, a folder of that name comes first.
    repository = name.partition("@")[0]  # what follows is its revision
    return is_hub_name(repository) and "/" in name and not is_file and not Path(name).exists()


def languages_of(summary: dict[str, Any], texts: Iterable[str]) -> list[str]:
    """Codes that the data say; empty where they do not.

    A translation's two languages and a reading test's are recorded; Chinese, Japanese and Korean
    are told by their script, other languages are not guessed.
    """
    data = summary["data"]
    if "source_language" in data:
        return [_code(str(data[f"{side}_language"])) for side in ("source", "target")]
    if data.get("language"):
        return [_code(str(data["language"]))]
    language = by_script(texts)
    return [] if language is None else [language]


def by_script(texts: Iterable[str]) -> str | None:
    """The language that only its script is needed for: zh, ja or ko; None: another, or none."""
    text = " ".join(texts)
    letters = sum(character.isalpha() for character in text)
    if letters == 0:
        return None
    share = {code: len(re.findall(script, text)) / letters for code, script in _SCRIPTS.items()}
    if share["ja"] > 0.1:  # kana are Japanese whatever stands between them
        return "ja"
    return next((code for code in ("zh", "ko") if share[code] >= _BY_SCRIPT), None)


def _code(language: str) -> str:
    """ "zh-CN" and "zh_CN" -> "zh"."""
    return re.split(r"[-_]", language.lower())[0]


def _relation(shareable: Shareable, base: str | None) -> str | None:
    if base is None:
        return None
    return "adapter" if shareable.library == "peft" else "finetune"


def _one_or_several(values: Sequence[str]) -> Any:
    if not values:
        return None
    return values[0] if len(values) == 1 else list(values)


def _is_metric(measured: Any) -> bool:
    return isinstance(measured, dict) and "value" in measured


def _how_measured(measured: Any) -> dict[str, Any]:
    """Interval, its method, number of examples and signature, where they are known."""
    if not _is_metric(measured):
        return {}
    return dict(_known_arguments(measured))


def _known_arguments(measured: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    ends = [plain_number(end) for end in measured.get("interval") or []]
    if len(ends) == 2 and None not in ends:
        yield "confidence_interval_95", ends
        if measured.get("interval_method"):
            yield "interval_method", str(measured["interval_method"])
    if (n := plain_number(measured.get("n"))) is not None:
        yield "n", n
    if measured.get("signature"):
        yield "signature", str(measured["signature"])
