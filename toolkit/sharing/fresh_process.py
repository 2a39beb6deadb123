"""See that a shared folder works for others: load it in a process without this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.json_values import read_object
from toolkit.progress import working
from toolkit.sharing import loading_script
from toolkit.sharing.inputs import some_images, some_texts
from toolkit.sharing.own_model import load_own_model, load_own_processor
from toolkit.sharing.shareable import Shareable
from toolkit.sharing.source import Source, read_source
from toolkit.sharing.tasks import AUTO_CLASSES, LABELLED, Kind, kind_of

TOLERANCE = 1e-4
"""Largest difference, relative to the largest output but at least to 1: rounding of float32."""

_MAX_LENGTH = 128


class SharingError(UserError):
    """A folder that others could not load, or that computes something else for them."""


def check_shareable(shareable: Shareable, run: Path, *, timeout: float = 600) -> float:
    """Load a folder in a fresh process and compare its outputs with those of the run's model.

    The process is offline and cannot import this package; it loads with plain transformers, peft or
    joblib, and executes the lines of `usage`. Both sides see the same few inputs, on the CPU.

    Args:
        run: what the folder was written from.
        timeout: seconds the process may take.

    Returns:
        The largest absolute difference of all outputs.

    Raises:
        SharingError: it cannot be loaded or used, weights are missing or have no place, labels have
            other names, a text becomes other tokens, outputs differ by more than `TOLERANCE`, or it
            takes too long.
        UserError: the run cannot be read.
    """
    source = read_source(Path(run))
    kind = kind_of(source)
    _compare_weights(shareable, source)
    with TemporaryDirectory() as name:
        place = Path(name)
        request = _request(shareable, source, kind, place)
        what = f"loading {shareable.folder} in a fresh process, offline, without this package"
        notify(what)
        with working(what):
            answer = _ask(shareable, request, place, timeout)
            _check_loading(shareable, answer, source, kind)
            expected = loading_script.outputs(
                load_own_model(source, kind), load_own_processor(source, kind), request
            )
            with np.load(place / "answer.npz") as found:
                return _largest_difference(shareable, dict(found), expected)


def _request(shareable: Shareable, source: Source, kind: Kind, place: Path) -> dict[str, Any]:
    images = some_images(source, place) if source.reads_images else []
    if images:
        from PIL import Image

        Image.open(images[-1]).save(place / "photo.jpg")  # of the lines of usage
    folder = str(shareable.folder.resolve())
    return {
        "folder": folder,
        "library": shareable.library,
        "check": shareable.check,
        "remote_code": shareable.remote_code,
        "base_model": shareable.base_model,
        "auto_class": AUTO_CLASSES.get(shareable.check),
        "usage": shareable.usage_of(folder),
        "texts": [] if images else some_texts(source, kind),
        "images": images,
        "max_length": _MAX_LENGTH,
        "threads": torch.get_num_threads(),
    }


def _ask(
    shareable: Shareable, request: dict[str, Any], place: Path, timeout: float
) -> dict[str, Any]:
    """The answer of the fresh process."""
    file = place / "request.json"
    file.write_text(json.dumps(request, ensure_ascii=False), encoding="utf-8")
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_MODULES_CACHE": str(place / "modules"),  # nothing of an earlier version of the source
        "CUDA_VISIBLE_DEVICES": "",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUTF8": "1",
    }
    # -P: not the folder of the script, where modules of this package are.
    command = [sys.executable, "-P", loading_script.__file__, str(file)]
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, timeout=timeout, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise SharingError(
            f"{shareable.folder}: loading it took more than {timeout:g} s; was stopped."
        ) from error
    if not (place / "answer.json").is_file():
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise SharingError(
            f"{shareable.folder}: the process that loads it ended with status {done.returncode}: "
            f"{last}"
        )
    answer = read_object(place / "answer.json")
    if "failed" in answer:
        raise SharingError(f"{shareable.folder}: {answer['failed']}: {answer['error'].strip()}")
    return answer


def _check_loading(
    shareable: Shareable, answer: dict[str, Any], source: Source, kind: Kind
) -> None:
    """Nothing may be new, left over or have lost its name."""
    for key, problem in (
        ("missing_keys", "weights are missing and would be random"),
        ("mismatched_keys", "weights have another shape than the model"),
        ("unexpected_keys", "weights have no place in the model"),
    ):
        names = answer.get(key)
        if names:
            raise SharingError(f"{shareable.folder}: {problem}: {', '.join(names[:4])}.")
    if kind.check in LABELLED and answer["labels"] != source.label_names:
        raise SharingError(
            f"{shareable.folder}: its labels are {answer['labels']}, those of the run "
            f"{source.label_names}."
        )


def _compare_weights(shareable: Shareable, source: Source) -> None:
    """Weights that were copied are the same, those included that no example reaches."""
    if shareable.library != "transformers":
        return
    if read_object(shareable.folder / "config.json").get("model_type") != source.model_type:
        return  # converted
    for file in sorted(source.model.glob("model*.safetensors")):
        copied = shareable.folder / file.name
        if not copied.is_file():
            continue  # loading will say so
        ours, theirs = load_file(file), load_file(copied)
        for name in sorted(ours.keys() & theirs.keys()):
            if not torch.equal(ours[name], theirs[name]):
                raise SharingError(f"{copied}: {name} is not as {file} has it.")


def _largest_difference(
    shareable: Shareable, found: dict[str, np.ndarray], expected: dict[str, np.ndarray]
) -> float:
    largest = 0.0
    for name, values in expected.items():
        theirs = found.get(name)
        if name.startswith("inputs") and not _equal(theirs, values):
            raise SharingError(
                f"{shareable.folder}: its tokenizer or image processor reads the same input "
                "differently from that of the run."
            )
        if name.startswith("generated") and not _equal(theirs, values):
            raise SharingError(f"{shareable.folder}: it generates something else than the run.")
        if theirs is None or theirs.shape != values.shape:
            raise SharingError(f"{shareable.folder}: its {name} have another shape than the run's.")
        if not np.isfinite(theirs).all() or not np.isfinite(values).all():
            raise SharingError(f"{shareable.folder}: its {name} are not all finite numbers.")
        difference = float(np.abs(theirs - values).max(initial=0.0))
        allowed = TOLERANCE * max(1.0, float(np.abs(values).max(initial=0.0)))
        if difference > allowed:
            raise SharingError(
                f"{shareable.folder}: its {name.rpartition(' ')[0]} differ by {difference:.2g} "
                f"from those of the run's model; at most {allowed:.2g} is rounding."
            )
        largest = max(largest, difference)
    return largest


def _equal(one: np.ndarray | None, other: np.ndarray) -> bool:
    return one is not None and one.shape == other.shape and bool((one == other).all())
