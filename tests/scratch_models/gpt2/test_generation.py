"""`generate()` gives HuggingFace's tokens, in every mode, up to the last position."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "no cache": {"use_cache": False},
    "static cache": {"cache_implementation": "static"},
    "beam": {"num_beams": 3},
    "beam, no cache": {"num_beams": 3, "use_cache": False},
    "beam, static cache": {"num_beams": 3, "cache_implementation": "static"},
    "beam, several, long ones favoured": {
        "num_beams": 4,
        "num_return_sequences": 3,
        "length_penalty": 2.0,
    },
    "beam, short ones favoured": {"num_beams": 4, "length_penalty": -1.0, "early_stopping": True},
    "sampling": {"do_sample": True},
    "top k": {"do_sample": True, "top_k": 5, "temperature": 3.0},
    "top p": {"do_sample": True, "top_p": 0.9, "temperature": 5.0, "num_return_sequences": 3},
    "sampled beams": {"do_sample": True, "num_beams": 3, "temperature": 2.0},
    "repetition penalty": {"repetition_penalty": 3.0},
    "no bigram twice": {"no_repeat_ngram_size": 2},
}


@pytest.mark.parametrize("lengths", [[5], [7, 3, 1]], ids=["one text", "padded"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_gives_huggingface_s_tokens_and_scores(
    mode: str, lengths: list[int], gpt2_pair, texts
) -> None:
    batch = texts(lengths)
    outputs = []
    for model in gpt2_pair():
        torch.manual_seed(5)
        outputs.append(
            model.generate(
                **batch,
                max_new_tokens=8,
                output_scores=True,
                output_logits=True,
                return_dict_in_generate=True,
                **MODES[mode],
            )
        )
    ours, theirs = outputs
    assert torch.equal(ours.sequences, theirs.sequences)
    assert ours.sequences.shape[1] > batch["input_ids"].shape[1]
    torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.scores, theirs.scores, atol=1e-4, rtol=1e-4)


def test_the_generation_config_of_the_model_is_followed(gpt2_pair, texts) -> None:
    batch, found = texts([5]), []
    for model in gpt2_pair():
        model.generation_config = GenerationConfig(
            max_new_tokens=6, num_beams=2, no_repeat_ngram_size=1, pad_token_id=0, eos_token_id=2
        )
        found.append(model.generate(**batch))
    assert torch.equal(*found)
    assert len(set(found[0][0].tolist()[5:])) == found[0].shape[1] - 5


def test_generation_stops_at_the_end_of_text_and_pads(gpt2_pair, texts) -> None:
    scratch, reference = gpt2_pair()
    batch = texts([4, 6])
    free = scratch.generate(**batch, max_new_tokens=8, eos_token_id=None)
    end = int(free[0, 8])  # what the first text says third
    ours, theirs = (
        m.generate(**batch, max_new_tokens=8, eos_token_id=end) for m in (scratch, reference)
    )
    assert torch.equal(ours, theirs)
    stop = ours[0, 6:].tolist().index(end)
    assert stop <= 2
    assert set(ours[0, 6 + stop + 1 :].tolist()) <= {0}


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
def test_a_padded_batch_gives_what_single_texts_give(attn: str, gpt2_pair, texts) -> None:
    scratch, _ = gpt2_pair(attn=attn)
    batch = texts([9, 4])
    together = scratch.generate(**batch, max_new_tokens=6, eos_token_id=None)
    for row, length in enumerate([9, 4]):
        alone = scratch.generate(
            batch["input_ids"][row : row + 1, -length:], max_new_tokens=6, eos_token_id=None
        )
        assert torch.equal(together[row, 9 - length :], alone[0])


@pytest.mark.parametrize("cache", [None, "static"])
@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
def test_steps_with_a_cache_equal_the_whole_computation(
    attn: str, cache: str | None, gpt2_pair, texts
) -> None:
    """The logits of five generated tokens, left-padded, against one pass without cache."""
    scratch, _ = gpt2_pair(attn=attn)
    batch = texts([8, 5, 2])
    steps = scratch.generate(
        **batch,
        max_new_tokens=5,
        eos_token_id=None,
        cache_implementation=cache,
        output_logits=True,
        return_dict_in_generate=True,
    )
    mask = torch.cat([batch["attention_mask"], torch.ones(3, 5, dtype=torch.long)], dim=1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        whole = scratch(
            steps.sequences, attention_mask=mask, position_ids=positions, use_cache=False
        )
    expected = whole.logits[:, 7:12].unbind(dim=1)
    torch.testing.assert_close(steps.logits, expected, atol=1e-5, rtol=1e-5)


def generate(model, prompt_length: int, **options: Any) -> tuple[torch.Tensor, list[str]]:
    """The tokens and what was warned of."""
    prompt = torch.randint(3, 61, (1, prompt_length))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tokens = model.generate(prompt, eos_token_id=None, **options)
    return tokens, [str(w.message) for w in caught if "generation stops" in str(w.message)]


@pytest.mark.parametrize("options", [{}, MODES["no cache"], MODES["static cache"], MODES["beam"]])
@pytest.mark.parametrize(
    ("prompt", "new", "total"),
    [(30, 2, 32), (30, 3, 33), (30, 4, 33), (30, 50, 33), (32, 1, 33), (32, 5, 33), (1, 99, 33)],
)
def test_generation_ends_where_the_positions_end(
    prompt: int, new: int, total: int, options: dict[str, Any], gpt2_pair
) -> None:
    """The last token is not read again: 32 positions make texts of up to 33 tokens."""
    scratch, _ = gpt2_pair()
    tokens, warned = generate(scratch, prompt, max_new_tokens=new, **options)
    assert tokens.shape[1] == total
    assert len(warned) == (prompt + new > 33)
    for message in warned:
        assert f"stops at 33 tokens, prompt included, not at the {prompt + new}" in message
        assert "32 positions" in message


@pytest.mark.parametrize("options", [MODES["greedy"], MODES["static cache"], MODES["beam"]])
def test_up_to_the_last_position_the_tokens_are_huggingface_s(
    options: dict[str, Any], gpt2_pair
) -> None:
    prompt = torch.randint(3, 61, (2, 26))
    ours, theirs = (
        m.generate(prompt, max_new_tokens=7, eos_token_id=None, **options) for m in gpt2_pair()
    )
    assert ours.shape[1] == 33
    assert torch.equal(ours, theirs)


def test_padding_takes_no_position(gpt2_pair, texts) -> None:
    """A prompt padded to 40 tokens, 10 of them real, has 22 positions left."""
    batch = texts([10, 40])
    batch = {name: tensor[:1] for name, tensor in batch.items()}
    scratch, reference = gpt2_pair()
    ours, theirs = (
        m.generate(**batch, max_new_tokens=20, eos_token_id=None) for m in (scratch, reference)
    )
    assert torch.equal(ours, theirs)
    with pytest.warns(UserWarning, match="stops at 63 tokens"):
        assert scratch.generate(**batch, max_new_tokens=40, eos_token_id=None).shape[1] == 63


def test_generation_from_embeddings_ends_there_too(gpt2_pair) -> None:
    scratch, reference = gpt2_pair()
    embeddings = scratch.get_input_embeddings()(torch.randint(3, 61, (1, 28))).detach()
    options = {"inputs_embeds": embeddings, "eos_token_id": None}
    ours, theirs = (m.generate(**options, max_new_tokens=5) for m in (scratch, reference))
    assert ours.shape[1] == 5
    assert torch.equal(ours, theirs)
    with pytest.warns(UserWarning, match="generation stops"):
        assert torch.equal(scratch.generate(**options, max_new_tokens=50), ours)


@pytest.mark.parametrize("options", [{"max_new_tokens": 5}, {}])
def test_a_prompt_longer_than_the_positions_is_refused(options: dict[str, Any], gpt2_pair) -> None:
    scratch, _ = gpt2_pair()
    with pytest.raises(ValueError, match=r"prompt has 33 tokens .* 32"):
        scratch.generate(torch.randint(3, 61, (1, 33)), **options)


def test_a_maximum_below_the_prompt_is_refused_as_huggingface_does(gpt2_pair) -> None:
    prompt = torch.randint(3, 61, (1, 24))
    for model in gpt2_pair():
        with pytest.raises(ValueError, match="Input length of input_ids is 24"):
            model.generate(prompt, max_length=20)


def test_max_new_tokens_wins_over_max_length(gpt2_pair) -> None:
    scratch, _ = gpt2_pair()
    tokens, warned = generate(scratch, 10, max_length=12, max_new_tokens=7)
    assert tokens.shape[1] == 17
    assert not warned


def test_a_conversation_goes_on_with_its_cache(gpt2_pair) -> None:
    scratch, reference = gpt2_pair()
    first, found = torch.randint(3, 61, (1, 6)), []
    options = {"max_new_tokens": 4, "eos_token_id": None, "return_dict_in_generate": True}
    for model in (scratch, reference):
        turn = model.generate(first, **options)
        longer = torch.cat([turn.sequences, first], dim=1)
        found.append(model.generate(longer, cache=turn.cache, **options).sequences)
        assert torch.equal(found[-1], model.generate(longer, **options).sequences)
    assert torch.equal(*found)
