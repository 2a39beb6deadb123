"""What the disk says, and how errors of other libraries tell that it is the disk's."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from toolkit.disk import cannot_write, free_space, is_full, sha256_of


def test_free_space_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    free, here = free_space(tmp_path / "a/b/c"), free_space(tmp_path)
    assert free == pytest.approx(here, rel=0.05)
    assert free > 0
    usage = os.statvfs(tmp_path)
    assert here == pytest.approx(usage.f_bavail * usage.f_frsize, rel=0.05)


def test_hash_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 100_000)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"abc" * 100_000).hexdigest()


FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    SafetensorError("I/O error: File too large (os error 27)"),
    RuntimeError("I/O error: No space left on device (os error 28)"),
]


@pytest.mark.parametrize("error", FULL)
def test_a_full_disk(error: Exception) -> None:
    assert is_full(error)
    assert cannot_write(error)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EROFS, "Read-only file system"),
        RuntimeError("[enforce fail at inline_container.cc:862] . PytorchStreamWriter failed"),
    ],
)
def test_another_trouble_of_the_disk(error: Exception) -> None:
    assert not is_full(error)
    assert cannot_write(error)


@pytest.mark.parametrize(
    "error",
    [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), KeyError("python"),
     torch.OutOfMemoryError("CUDA out of memory"), SafetensorError("invalid header")],
)  # fmt: skip
def test_what_has_nothing_to_do_with_the_disk(error: Exception) -> None:
    assert not is_full(error)
    assert not cannot_write(error)


def test_what_torch_says_of_a_file_that_cannot_grow(tmp_path: Path) -> None:
    """The words that are looked for are those of the version that is installed."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which has no space")
    with pytest.raises((RuntimeError, OSError)) as caught:
        torch.save({"weights": torch.ones(100_000)}, "/dev/full")
    assert cannot_write(caught.value)
