"""The tokenizer of whatever a user names: a run, a model, a folder or a file of a tokenizer alone.

`toolkit.modeling.load_tokenizer` wants a model to go with it; to see how a text is cut, the files
of the tokenizer are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.data.suggest import near_names, near_paths
from toolkit.demo.chinese_bert import NAME as CHINESE_BERT
from toolkit.demo.chinese_bert import chinese_bert_folder
from toolkit.demo.vocabularies import NAMES as VOCABULARIES
from toolkit.demo.vocabularies import vocabulary_folder
from toolkit.errors import UserError, first_line
from toolkit.network import hub_failure, is_hub_name

FILES = (
    "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "tokenizer.model",
    "spiece.model", "sentencepiece.bpe.model", "source.spm",
)  # fmt: skip
_WORKS = "a run, a model or tokenizer folder, " + ", ".join((CHINESE_BERT, *VOCABULARIES))


def open_tokenizer(name: str) -> Any:
    """HuggingFace's tokenizer of a run, a folder, a tokenizer.json, a `demo:` name or a Hub name.

    Raises:
        UserError: nothing of that name, no tokenizer in it, or one that cannot be read.
    """
    if name.startswith("demo:"):
        return _read(_embedded(name), name)
    path = Path(name).expanduser()
    if name and path.is_dir():
        return _read(_tokenizer_folder(path), name)
    if name and path.is_file():
        return _read_file(path)
    if not is_hub_name(name):
        raise UserError(
            f"no such folder: {name or '(an empty name)'}.{near_paths(path)} Works: {_WORKS}."
        )
    return _from_hub(name)


def _embedded(name: str) -> Path:
    if name in VOCABULARIES:
        return vocabulary_folder(name)
    if name == CHINESE_BERT:
        return chinese_bert_folder()
    known = (CHINESE_BERT, *VOCABULARIES)
    raise UserError(
        f"no embedded tokenizer {name!r}; there are {', '.join(known)}.{near_names(name, known)}"
    )


def _tokenizer_folder(path: Path) -> Path:
    """The folder itself, or that of the model of a run."""
    if has_tokenizer(path):
        return path
    if has_tokenizer(path / "model"):
        return path / "model"
    if (path / "model" / "tfidf.joblib").is_file() or (path / "tfidf.joblib").is_file():
        raise UserError(
            f"{path}: TF-IDF counts pieces of words or characters; it has no tokenizer."
        )
    if (path / "environment.json").is_file() and not (path / "model").is_dir():
        raise UserError(
            f"{path}: this run is not complete, it has saved no model yet. Finish it first: run "
            f"its recipe with --resume {path}."
        )
    inside = [str(child) for child in sorted(path.iterdir()) if has_tokenizer(child)]
    hint = f" Did you mean {' or '.join(inside[:3])}?" if inside else ""
    raise UserError(f"{path} holds no tokenizer: expected one of {', '.join(FILES)}.{hint}")


def has_tokenizer(folder: Path) -> bool:
    """True for a folder with any file that tokenizers are saved in."""
    return folder.is_dir() and any((folder / name).is_file() for name in FILES)


def _read(folder: Path, name: str) -> Any:
    from transformers import BertTokenizer, GPT2Tokenizer, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.set_verbosity_error()

    def is_there(*files: str) -> bool:
        return all((folder / file).is_file() for file in files)

    described = is_there("tokenizer_config.json") or is_there("config.json")
    read: Callable[[Path], Any] = _automatic
    if not described and is_there("tokenizer.json"):
        read = PreTrainedTokenizerFast.from_pretrained
    elif not described and is_there("vocab.txt"):  # files alone say whose they are by their names
        read = BertTokenizer.from_pretrained
    elif not described and is_there("vocab.json", "merges.txt"):
        read = GPT2Tokenizer.from_pretrained
    try:
        return read(folder)
    except Exception as error:  # damaged files: the library's Rust part raises Exception itself
        raise UserError(f"{name}: its tokenizer cannot be read: {first_line(error)}") from error


def _automatic(folder: Path) -> Any:
    from transformers import AutoTokenizer

    from toolkit.modeling import load_tokenizer

    if not (folder / "config.json").is_file():
        return AutoTokenizer.from_pretrained(folder)
    return load_tokenizer(str(folder))


def _read_file(path: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    if path.suffix != ".json":
        raise UserError(f"{path} is a file; give a tokenizer.json, or the folder that it is in.")
    try:
        return PreTrainedTokenizerFast(tokenizer_file=str(path))
    except Exception as error:  # `tokenizers` raises Exception itself
        raise UserError(
            f"{path} is no tokenizer.json that can be read: {first_line(error)}"
        ) from error


def _from_hub(name: str) -> Any:
    from transformers import AutoTokenizer

    failure = hub_failure()
    if failure is not None and not _is_cached(name):
        raise UserError(
            f"no folder {name} here, and the Hub cannot be asked for a model of that name: "
            f"{failure}, and its tokenizer is not in the local cache.{near_paths(Path(name))} "
            f"Works offline: {_WORKS}."
        )
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{name}: no tokenizer of that name can be fetched: {first_line(error)}"
        ) from error


def _is_cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return any(isinstance(try_to_load_from_cache(name, file), str) for file in FILES)
