"""The model card: what a model is, how good it is, how to use it, and what it is not for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from toolkit.report.markdown_blocks import escape
from toolkit.sharing.card_sections.examples import describe_examples, test_texts
from toolkit.sharing.card_sections.limits import describe_limits
from toolkit.sharing.card_sections.training import (
    describe_environment,
    describe_origin,
    describe_training,
)
from toolkit.sharing.findings import findings_of
from toolkit.sharing.metadata import card_data, languages_of
from toolkit.sharing.push_options import CardOptions
from toolkit.sharing.run_record import RunRecord
from toolkit.sharing.shareable import Shareable

TEMPLATE = Path(__file__).parent / "templates" / "model_card.md.j2"
PLOT = "training.png"


def write_card(
    record: RunRecord,
    shareable: Shareable,
    repo: str,
    options: CardOptions,
    *,
    license: str | None,
    plot: bool,
) -> str:
    """The card of a run, as Markdown with its metadata in front.

    Args:
        record: what the run wrote down, without local paths.
        repo: "user/name" on the Hub.
        license: of the model, where it is known.
        plot: `training.png` lies beside it.
    """
    from huggingface_hub import ModelCard

    summary = record.summary
    findings = findings_of(summary)
    languages = list(options.languages) or languages_of(summary, test_texts(record.folder, summary))
    data = card_data(summary, shareable, repo, languages=languages, license=license)
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        title=escape(str(summary["title"])),
        about=findings.about,
        examples=describe_examples(record.folder, summary, shown=options.examples),
        results="\n".join([*findings.results, *_published(summary)]),
        plot={"file": PLOT, "alt": "training loss and validation by optimizer step"}
        if plot
        else None,
        before_use=_before_use(shareable),
        usage=shareable.usage_of(repo).strip(),
        training=describe_training(summary, record.config),
        environment=describe_environment(summary),
        limits=describe_limits(summary, record.data, shareable),
        origin=describe_origin(summary, record.environment),
    )
    return _tidied(str(card))


def write_card_of_folder(
    title: str, config: dict[str, Any], shareable: Shareable, options: CardOptions,
    *, license: str | None,
) -> str:  # fmt: skip
    """The card of a model that no run tells of: what it is and how to use it.

    Args:
        title: heading.
        config: the model's config.json; empty where it has none.
    """
    from huggingface_hub import ModelCard, ModelCardData

    languages = list(options.languages)
    architecture = ", ".join(config.get("architectures") or []) or "A model"
    labels = config.get("id2label") or {}
    data = ModelCardData(
        language=languages or None,
        license=license,
        library_name=shareable.library,
        pipeline_tag=shareable.pipeline_tag,
        base_model=shareable.base_model,
        tags=["scratch-models-toolkit"],
    )
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        title=escape(title),
        about=f"{architecture}. How it was trained and measured is not recorded."
        + (f" Labels: {', '.join(map(str, labels.values()))}." if labels else ""),
        before_use=_before_use(shareable),
        usage=shareable.usage_of(title).strip(),
        limits=describe_limits(None, {}, shareable),
    )
    return _tidied(str(card))


def _before_use(shareable: Shareable) -> str:
    if shareable.library == "peft":
        return (
            f"An adapter of {shareable.base_model}, for peft. These lines were tried in a fresh "
            "process before it was uploaded:"
        )
    return (
        f"With plain {shareable.library.replace('sklearn', 'scikit-learn')}; it was loaded so in "
        "a fresh process, offline, before it was uploaded:"
    )


def _published(summary: dict[str, Any]) -> list[str]:
    """The published number that the preset repeats."""
    published = summary.get("published")
    if not published:
        return []
    return [
        "",
        f"Published: {published['metric']} {published['value']:g} on {published['split']} "
        f"({published['setting']}; {published['source']}).",
    ]


def _tidied(card: str) -> str:
    """Parts that are left out leave one empty line, not several."""
    return re.sub(r"\n{3,}", "\n\n", card).strip() + "\n"
