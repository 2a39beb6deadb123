"""RoBERTa is BERT with other positions: the way they are counted is where copies go wrong."""

from __future__ import annotations

import pytest
import torch
import transformers
from transformers import RobertaConfig, RobertaModel

from scratch_models import ScratchRobertaModel, scratch_class
from scratch_models.hub.architecture import architectures
from scratch_models.hub.mapping import to_own_names
from scratch_models.models.roberta.parity_grid import TINY


def pair(**changes) -> tuple[ScratchRobertaModel, RobertaModel]:
    reference = RobertaModel(RobertaConfig(**{**TINY, **changes})).eval()
    scratch = ScratchRobertaModel(RobertaConfig(**{**TINY, **changes})).eval()
    scratch.load_state_dict(reference.state_dict())
    return scratch, reference


@pytest.mark.parametrize(
    ("ids", "positions"),
    [
        ([5, 6, 7, 8], [2, 3, 4, 5]),
        ([5, 6, 1, 7, 8], [2, 3, 1, 4, 5]),  # padding in the middle is padding
        ([1, 1, 5, 6], [1, 1, 2, 3]),
        ([5, 6, 1, 1], [2, 3, 1, 1]),
        ([1, 1], [1, 1]),
    ],
)
def test_tokens_are_counted_from_two_and_padding_is_not(
    ids: list[int], positions: list[int]
) -> None:
    scratch, reference = pair()
    scratch.set_packing("off")
    input_ids = torch.tensor([ids])
    assert scratch.embeddings.position.of_tokens(input_ids).tolist() == [positions]
    # The mask has no say in it: with and without, HuggingFace counts the same.
    for mask in (None, torch.ones_like(input_ids), (input_ids != 1).long()):
        ours = scratch(input_ids, attention_mask=mask).last_hidden_state
        theirs = reference(input_ids, attention_mask=mask).last_hidden_state
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("pad", [1, 3])
def test_what_padding_takes_is_missing_for_text(pad: int) -> None:
    scratch, reference = pair(max_position_embeddings=34, pad_token_id=pad)
    usable = 34 - pad - 1
    for length in (usable - 1, usable):
        ids = torch.full((1, length), 5)
        ours, theirs = scratch(ids).last_hidden_state, reference(ids).last_hidden_state
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    for wrong in ({"input_ids": torch.full((1, usable + 1), 5)},):
        with pytest.raises(ValueError, match=rf"{usable + 1} tokens .* {usable} only"):
            scratch(**wrong)
    with pytest.raises(ValueError, match=f"{usable + 1} tokens"):
        scratch(inputs_embeds=torch.randn(1, usable + 1, 32))


def test_positions_from_zero_are_another_input() -> None:
    scratch, reference = pair()
    scratch.set_packing("off")
    ids = torch.tensor([[5, 6, 7, 8]])
    plain = scratch(ids).last_hidden_state
    from_two = torch.arange(2, 6)[None]
    torch.testing.assert_close(scratch(ids, position_ids=from_two).last_hidden_state, plain)
    from_zero = scratch(ids, position_ids=from_two - 2).last_hidden_state
    assert (from_zero - plain).abs().max() > 0.1
    theirs = reference(ids, position_ids=from_two - 2).last_hidden_state
    torch.testing.assert_close(from_zero, theirs, atol=1e-5, rtol=0)


def test_vectors_in_place_of_tokens_are_all_taken_for_real() -> None:
    scratch, reference = pair()
    scratch.set_packing("off")
    vectors = torch.randn(2, 5, 32)
    ours = scratch(inputs_embeds=vectors).last_hidden_state
    torch.testing.assert_close(
        ours, reference(inputs_embeds=vectors).last_hidden_state, atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("head", architectures()["roberta"].classes)
def test_the_same_seed_gives_huggingface_s_fresh_weights(head: str) -> None:
    own_class = scratch_class("roberta", head)
    torch.manual_seed(7)
    reference = getattr(transformers, str(own_class.huggingface_class))(RobertaConfig(**TINY))
    torch.manual_seed(7)
    own = own_class(RobertaConfig(**TINY)).state_dict()
    expected = to_own_names(own_class(RobertaConfig(**TINY)), reference.state_dict())
    assert own.keys() == expected.keys()
    assert all(torch.equal(own[name], expected[name]) for name in own)
