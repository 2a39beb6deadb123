"""Samples: prompts of different length, too long ones, texts that end, and nothing disturbed."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from scratch_models import ScratchGPT2LMHeadModel
from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.errors import UserError
from toolkit.gpt2 import agree_on_special_tokens
from toolkit.text_samples import SamplingSettings, generate_samples, prompt_tokens

GREEDY = {"temperature": 0.0, "max_new_tokens": 6}
PROMPTS = ["酒店", "the hotel was", "x"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_bpe(["酒店很好", "the hotel was clean"] * 3, 300)


@pytest.fixture(params=[GPT2LMHeadModel, ScratchGPT2LMHeadModel])
def model(request, tokenizer):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=24, n_embd=32, n_layer=2, n_head=4,
        initializer_range=0.3, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = request.param(config).train()
    agree_on_special_tokens(model, tokenizer)
    return model


def greedy(model, tokenizer, prompt, tokens):
    """One token after another, each from a forward pass over all before it."""
    ids = tokenizer(prompt)["input_ids"]
    start = len(ids)
    model.eval()
    with torch.no_grad():
        for _ in range(tokens):
            logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits
            ids.append(int(logits[0, -1].argmax()))
    return tokenizer.decode(ids)[len(prompt) :] if 0 not in ids[start:] else None


def test_greedy_by_hand(model, tokenizer):
    settings = SamplingSettings(PROMPTS, temperature=0.0, max_new_tokens=12)
    samples = generate_samples(model, tokenizer, settings, 0)
    expected = [greedy(model, tokenizer, prompt, 12) for prompt in PROMPTS]
    assert [sample.text for sample in samples] == expected


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_prompts_together_go_on_as_each_alone(model, tokenizer, penalty):
    settings = {**GREEDY, "repetition_penalty": penalty}
    together = generate_samples(model, tokenizer, SamplingSettings(PROMPTS, **settings), 0)
    for prompt, sample in zip(PROMPTS, together, strict=True):
        assert sample.prompt == prompt
        assert [sample] == generate_samples(
            model, tokenizer, SamplingSettings([prompt], **settings), 0
        )
    assert len({sample.text for sample in together}) > 1


def test_sampling_follows_its_seed_and_leaves_the_random_state_and_the_mode(model, tokenizer):
    settings = SamplingSettings(PROMPTS, max_new_tokens=12, temperature=1.0)
    before = torch.get_rng_state()
    first = generate_samples(model, tokenizer, settings, 3)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training
    assert generate_samples(model, tokenizer, settings, 3) == first
    assert generate_samples(model, tokenizer, settings, 4) != first


def always(model, tokenizer, favourites):
    """Make the model prefer these tokens in this order, whatever it reads."""
    norm = [part for part in model.modules() if isinstance(part, torch.nn.LayerNorm)][-1]
    with torch.no_grad():
        norm.weight.zero_()
        norm.bias.fill_(1.0)
        model.lm_head.weight[:] = -1.0
        for rank, token in enumerate(favourites):
            model.lm_head.weight[tokenizer.convert_tokens_to_ids(token)] = 1.0 - 0.1 * rank


def test_a_text_that_ends_stops_there(model, tokenizer):
    always(model, tokenizer, [tokenizer.eos_token])
    samples = generate_samples(model, tokenizer, SamplingSettings(PROMPTS, **GREEDY), 0)
    assert [(sample.text, sample.ended) for sample in samples] == [("", True)] * 3
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_padding_is_no_text_that_was_there_before(model, tokenizer):
    always(model, tokenizer, [tokenizer.eos_token, "a"])
    # The padding of short prompts is the end of text, which must be allowed to come once.
    once = SamplingSettings(PROMPTS, **GREEDY, no_repeat_ngram_size=1)
    samples = generate_samples(model, tokenizer, once, 0)
    assert [(sample.text, sample.ended) for sample in samples] == [("", True)] * 3
    always(model, tokenizer, ["a", tokenizer.eos_token])
    # A penalty below 1 favours what is there.
    favoured = SamplingSettings(PROMPTS, **GREEDY, repetition_penalty=0.02)
    samples = generate_samples(model, tokenizer, favoured, 0)
    assert [(sample.text, sample.ended) for sample in samples] == [("aaaaaa", False)] * 3


@pytest.mark.parametrize(
    ("rule", "text"), [({}, "aaaaaa"), ({"no_repeat_ngram_size": 2}, "aabaca")]
)
def test_no_repeated_pairs_where_asked(model, tokenizer, rule, text):
    always(model, tokenizer, "abc")
    settings = SamplingSettings(["x"], **GREEDY, **rule)
    assert [sample.text for sample in generate_samples(model, tokenizer, settings, 0)] == [text]


def test_a_prompt_that_is_too_long_loses_its_start_and_that_is_said(model, tokenizer, capsys):
    long = "the hotel was clean " * 20
    samples = generate_samples(model, tokenizer, SamplingSettings([long], **GREEDY), 0)
    assert long.endswith(samples[0].prompt)
    assert len(tokenizer(samples[0].prompt)["input_ids"]) <= 24 + 1 - 6
    assert "only the last 19 are read" in capsys.readouterr().err
    # more tokens than positions are not asked for
    endless = SamplingSettings(["x"], temperature=0.0, max_new_tokens=99)
    assert generate_samples(model, tokenizer, endless, 0)[0].text
    assert prompt_tokens(["x"], tokenizer, None, 5) == [tokenizer("x")["input_ids"]]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("temperature", -1.0), ("top_p", 0.0), ("max_new_tokens", 0), ("prompts", [""])],
)
def test_settings_that_cannot_be_are_refused(setting, value):
    with pytest.raises(UserError, match=rf"--samples\.{setting}"):
        SamplingSettings(**{setting: value}).check()
