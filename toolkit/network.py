"""Find out once, quickly, whether the Hub can be reached, and go offline if it cannot.

HuggingFace's loaders retry an unreachable Hub for 20 to 50 seconds each. One probe with a short
timeout before the first loader, then offline mode for the whole process, replaces all of that.
"""

from __future__ import annotations

import functools
import os
import queue
import re
import sys
import threading
from pathlib import Path

PROBE_SECONDS = 2.0
_HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?", re.ASCII)


def is_hub_name(name: str) -> bool:
    """True where `name` may stand on the Hub: "name" or "owner/name", not a path."""
    return _HUB_NAME.fullmatch(name) is not None


@functools.cache
def hub_failure() -> str | None:
    """Why the Hub cannot be used, in a few words, or None where it can be.

    The Hub at `HF_ENDPOINT` (default https://huggingface.co) is asked at most once per process and
    for at most `PROBE_SECONDS`. After a failure huggingface_hub, transformers and datasets are in
    offline mode: they use their local caches and never retry. `HF_HUB_OFFLINE=1` set by the user is
    respected without a probe.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        _go_offline()
        return "offline mode is set (HF_HUB_OFFLINE)"
    failure = _probe(PROBE_SECONDS)
    if failure is not None:
        _go_offline()
    return failure


def offline_command() -> str:
    """What works without the Hub: the demo of the recipe that is running, else the main one."""
    recipe = Path(sys.argv[0])
    if not (recipe.parent / "presets" / recipe.stem / "demo.yaml").is_file():
        recipe = Path("recipes/bert_sentiment.py")
    return f"accelerate launch {recipe} --preset demo"


def hub_reachable() -> bool:
    """True where the Hub answers; probes once per process, see `hub_failure`."""
    return hub_failure() is None


def _probe(timeout: float) -> str | None:
    """Ask the endpoint with the loaders' own client (the same proxies and certificates)."""
    from huggingface_hub import constants

    endpoint = constants.ENDPOINT
    answer: queue.Queue[str | None] = queue.Queue()
    # In a thread because no client's timeout covers the name lookup, nor connect and read together.
    threading.Thread(target=_ask, args=(endpoint, timeout, answer), daemon=True).start()
    try:
        return answer.get(timeout=timeout)
    except queue.Empty:
        return f"{endpoint} did not answer within {timeout:g} s"


def _ask(endpoint: str, timeout: float, answer: queue.Queue[str | None]) -> None:
    from huggingface_hub import get_session

    try:
        status = get_session().head(endpoint, timeout=timeout).status_code
    except (
        Exception
    ) as error:  # any failure to connect has the same consequence; the text says which
        reason = str(error) or type(error).__name__
        answer.put(f"{endpoint} cannot be reached ({reason})")
        return
    answer.put(f"{endpoint} answers with HTTP status {status}" if status >= 500 else None)


def go_online() -> None:
    """Undo what a failed probe did, for who has reason to think that the Hub answers again."""
    from huggingface_hub import constants

    os.environ.pop("HF_HUB_OFFLINE", None)
    constants.HF_HUB_OFFLINE = False


def _go_offline() -> None:
    """Set offline mode where the libraries look for it, now and in processes started later.

    The variable alone is not enough: huggingface_hub and datasets read it when they are imported.
    transformers and peft ask huggingface_hub.
    """
    from huggingface_hub import constants

    os.environ["HF_HUB_OFFLINE"] = "1"
    constants.HF_HUB_OFFLINE = True
    if "datasets" in sys.modules:
        import datasets.config

        datasets.config.HF_HUB_OFFLINE = True
        datasets.config.HF_DATASETS_OFFLINE = True
