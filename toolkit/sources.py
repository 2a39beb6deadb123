"""A model's name to what `from_pretrained` can load, or one line that says what works instead."""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.data.suggest import near_names, near_paths
from toolkit.demo.chinese_bert import NAME as CHINESE_BERT
from toolkit.demo.chinese_bert import chinese_bert_folder
from toolkit.errors import UserError, first_line
from toolkit.network import hub_failure, is_hub_name, offline_command

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.bin.index.json")


def resolve_model(name: str) -> str:
    """The folder of a local or embedded model, or a Hub name that can be loaded.

    Args:
        name: a folder with a config.json, `demo:chinese-bert`, or a name on the Hub. A Hub name
            that is in the local cache works without the Hub.

    Raises:
        UserError: no such folder, a folder with an adapter alone, an embedded name that does not
            exist, or a Hub name that can neither be fetched nor found in the cache.
    """
    if name.startswith("demo:"):
        if name != CHINESE_BERT:
            raise UserError(f"unknown embedded model {name!r}; there is {CHINESE_BERT}.")
        return str(chinese_bert_folder())
    path = Path(name).expanduser()
    if name and path.exists():
        return _check_folder(path)
    if not is_hub_name(name):
        raise UserError(f"no such model folder: {name}.{near_paths(path)}")
    return _check_hub_name(name)


def _check_folder(path: Path) -> str:
    if path.is_file():
        raise UserError(f"{path} is a file; give the folder that holds it and its config.json.")
    if not (path / "config.json").is_file():
        if (path / "adapter_config.json").is_file():
            raise UserError(_adapter_message(path))
        inside = [str(p.parent) for p in sorted(path.glob("*/config.json"))]
        hint = f" Did you mean {' or '.join(inside[:3])}?" if inside else ""
        raise UserError(f"{path} is no model folder: it has no config.json.{hint}")
    return str(path)


def _adapter_message(path: Path) -> str:
    """An adapter is a change of some weights of a model; a recipe beside it saved the sum too."""
    found = f"{path} holds an adapter alone (adapter_config.json), not a whole model."
    merged = Path(os.path.normpath(path / ".." / "model"))
    if (merged / "config.json").is_file():
        return f"{found} Merged with its base it is {merged}: give that folder."
    return (
        f"{found} Merge it with its base first, with peft: PeftModel.from_pretrained(base, "
        f"{str(path)!r}).merge_and_unload().save_pretrained(FOLDER); and save the tokenizer there."
    )


def _check_hub_name(name: str) -> str:
    """The name as it is, once it is certain that the loaders find the model without retries."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    failure = hub_failure()
    if failure is not None:
        if not _is_cached(name):
            raise UserError(_message(name, f"{failure} and it is not in the local cache"))
        return name
    try:
        hf_hub_download(name, "config.json")
    except EntryNotFoundError as error:
        raise UserError(f"{name!r} on the Hub is no transformers model: no config.json.") from error
    except (HfHubHTTPError, OSError) as error:
        raise UserError(_message(name, first_line(error))) from error
    return name


def _is_cached(name: str) -> bool:
    """True where the cache holds a description and weights, not a part of a download."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json")
    if not isinstance(config, str):
        return False
    return any(True for pattern in _WEIGHTS for _ in Path(config).parent.glob(pattern))


def _message(name: str, reason: str) -> str:
    here = [child.name for child in Path.cwd().iterdir()]
    return (
        f"cannot fetch the model {name!r}: {reason.rstrip('.')}. "
        f"Works offline: `{offline_command()}`, or a model folder of your own: `--model PATH`."
        f"{near_names(name, here)}"
    )
