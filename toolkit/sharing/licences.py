"""The licence of a model on the Hub, where it says one; never guessed."""

from __future__ import annotations

_PATIENCE = 10.0  # seconds: a card without a licence is no reason to wait


def licence_of(model: str | None) -> str | None:
    """What the card of a model says: on the Hub, or without it in the cache; None: not known.

    Args:
        model: name on the Hub; None: there is none.
    """
    if model is None:
        return None
    from huggingface_hub import HfApi, ModelCard, constants, try_to_load_from_cache
    from huggingface_hub.errors import HTTPError

    if not constants.HF_HUB_OFFLINE:
        try:
            data = HfApi().model_info(model, timeout=_PATIENCE).card_data
            return None if data is None else _one(data.get("license"))
        except (HTTPError, OSError):  # it is private or gone, or the Hub is
            pass
    cached = try_to_load_from_cache(model, "README.md")
    if not isinstance(cached, str):
        return None
    try:
        return _one(ModelCard.load(cached).data.get("license"))
    except ValueError:  # metadata that cannot be read
        return None


def _one(licence: object) -> str | None:
    if isinstance(licence, list):
        licence = licence[0] if licence else None
    return licence if isinstance(licence, str) and licence else None
