"""generate() gives the ids HuggingFace's Marian gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "greedy without cache": {"use_cache": False},
    "static cache": {"cache_implementation": "static"},
    "beams": {"num_beams": 4},
    "beams without cache": {"num_beams": 3, "use_cache": False},
    "beams in a static cache": {"num_beams": 3, "cache_implementation": "static"},
    "opus-mt's own": {
        "num_beams": 4,
        "bad_words_ids": [[60]],
        "forced_eos_token_id": 0,
        "max_length": 12,
        "max_new_tokens": None,
    },
    "several beams, long sentences first": {
        "num_beams": 4,
        "length_penalty": 2.0,
        "early_stopping": True,
        "num_return_sequences": 3,
    },
    "sampling": {"do_sample": True, "top_k": 20, "temperature": 0.7},
    "sampling, several": {"do_sample": True, "num_return_sequences": 2},
}


def generate(model, batch: dict[str, Any], **how: Any) -> torch.Tensor:
    torch.manual_seed(5)
    return model.generate(**batch, **{"max_new_tokens": 12, **how})


@pytest.mark.parametrize("way", WAYS)
def test_generated_ids_equal_huggingface(way, marian_pair, sentences) -> None:
    scratch, reference = marian_pair()
    batch = sentences([9, 5, 7])
    ours, theirs = (generate(model, batch, **WAYS[way]) for model in (scratch, reference))
    assert torch.equal(ours, theirs)
    assert ours.shape[1] > 3
    assert len(set(map(tuple, ours.tolist()))) > 1


@pytest.mark.parametrize("way", ["beams", "static cache"])
def test_the_written_out_attention_gives_the_same_ids(way, marian_pair, sentences) -> None:
    scratch, reference = marian_pair()
    scratch.set_attn_implementation("scratch")
    batch = sentences([9, 5])
    ours, theirs = (generate(model, batch, **WAYS[way]) for model in (scratch, reference))
    assert torch.equal(ours, theirs)


def test_separate_vocabularies(marian_pair, sentences) -> None:
    separate = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 53}
    scratch, reference = marian_pair(**separate, pad_token_id=52, decoder_start_token_id=52)
    batch = sentences([9, 5], padding=52)
    ours, theirs = (generate(model, batch, num_beams=3) for model in (scratch, reference))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("way", ["greedy", "beams"])
def test_a_batch_gives_what_its_sentences_give_alone(way, marian_pair, sentences) -> None:
    scratch, _ = marian_pair()
    batch = sentences([9, 5])
    together = generate(scratch, batch, **WAYS[way], min_new_tokens=12)
    for row, length in enumerate([9, 5]):
        alone = {name: tensor[row : row + 1, :length] for name, tensor in batch.items()}
        assert torch.equal(
            generate(scratch, alone, **WAYS[way], min_new_tokens=12)[0], together[row]
        )


def test_what_is_returned_beside_the_ids_equals_huggingface(marian_pair, sentences) -> None:
    scratch, reference = marian_pair(attn="eager")
    batch = sentences([9, 5])
    flags = ("output_scores", "output_attentions", "output_hidden_states")
    how = {"num_beams": 2, "return_dict_in_generate": True, **dict.fromkeys(flags, True)}
    ours, theirs = (generate(model, batch, **how) for model in (scratch, reference))
    torch.testing.assert_close(ours.sequences_scores, theirs.sequences_scores)
    for kind in ("encoder_attentions", "cross_attentions", "decoder_attentions"):
        torch.testing.assert_close(getattr(ours, kind), getattr(theirs, kind))


def test_steps_with_a_cache_equal_one_pass(marian_pair, sentences) -> None:
    scratch, _ = marian_pair()
    batch = sentences([9, 5])
    targets = torch.randint(1, 45, (2, 6))
    whole = scratch(**batch, decoder_input_ids=targets).logits
    cache, logits = None, []
    for start, stop in ((0, 3), (3, 4), (4, 6)):
        step = scratch(
            **batch, decoder_input_ids=targets[:, start:stop], cache=cache, use_cache=True
        )
        cache = step.cache
        logits.append(step.logits)
    torch.testing.assert_close(torch.cat(logits, dim=1), whole, atol=1e-5, rtol=0)


def test_longer_than_the_position_table(marian_pair, sentences) -> None:
    """HuggingFace stops with an index error here; a formula has no end."""
    short, _ = marian_pair(max_position_embeddings=8)
    long, reference = marian_pair(max_position_embeddings=24)
    weights = {n: t for n, t in long.state_dict().items() if "position" not in n}
    short.load_state_dict(weights, strict=False)
    batch = sentences([14, 9])
    expected = generate(reference, batch, num_beams=2, min_new_tokens=12)
    for how in ({}, {"use_cache": False}, {"cache_implementation": "static"}):
        ids = generate(short, batch, num_beams=2, min_new_tokens=12, **how)
        assert torch.equal(ids, expected)
