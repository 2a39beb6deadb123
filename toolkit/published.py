"""A published result that a preset repeats: what a run of it is set beside."""

# No `from __future__ import annotations` here: jsonargparse reads the types of the fields.
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Published:
    """One number, and what it is of."""

    metric: str
    """Its name in the summary's section of the split: accuracy, entity_f1, bleu_lowercase, …"""
    value: float
    """On that metric's scale: 0.947 for an accuracy of 94.7 %, 41.02 for BLEU."""
    split: Literal["validation", "test"]
    """Of our splits: many papers call their validation data the dev set."""
    dataset: str
    """As the summary shows it (data.dataset)."""
    setting: str
    """How it was reached, in words."""
    source: str
    """Where it stands."""
    hub_config: str | None = None
    """Configuration of a data set on the Hub that has several."""
    sha256: str | None = None
    """Hash of the split (data.hashes). With it the data are known by their content, wherever they
    lie; without it by name."""


def published_result(config: Any, data: dict[str, Any]) -> dict[str, Any] | None:
    """What a run may be set beside; None where it was measured on other data, or on a part.

    Args:
        config: of the run.
        data: what data.json records: ``source`` and ``sha256`` by split.
    """
    published: Published | None = config.published
    if published is None:
        return None
    if published.sha256 is not None:
        same = data["sha256"].get(published.split) == published.sha256
    else:
        same = (
            data["source"] == published.dataset
            and getattr(config, "hub_config", None) == published.hub_config
            and getattr(config, f"{published.split}_size", None) is None
        )
    if not same:
        return None
    shown = {name: getattr(published, name) for name in ("metric", "value", "split")}
    shown["dataset"] = data["source"]  # one known by its hash may have another name here
    return shown | {"setting": published.setting, "source": published.source}
