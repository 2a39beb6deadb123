"""Samples: prompts of different length, too long ones, texts that end, and nothing disturbed."""

from itertools import pairwise

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
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=24, n_embd=32, n_layer=2, n_head=4,
        initializer_range=0.3, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = request.param(config).train()
    agree_on_special_tokens(model, tokenizer)
    return model


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


def test_a_text_that_ends_stops_there(model, tokenizer):
    with torch.no_grad():  # whatever was read, the end of text comes next
        norm = [m for m in model.modules() if isinstance(m, torch.nn.LayerNorm)][-1]
        norm.weight.zero_()
        norm.bias.fill_(1.0)
        model.lm_head.weight[:] = -1.0
        model.lm_head.weight[0] = 1.0
    samples = generate_samples(model, tokenizer, SamplingSettings(PROMPTS, **GREEDY), 0)
    assert [(sample.text, sample.ended) for sample in samples] == [("", True)] * 3


def test_no_repeated_pairs_where_asked(model, tokenizer):
    plain = SamplingSettings(["x"], temperature=0.0, max_new_tokens=20)
    ruled = SamplingSettings(["x"], temperature=0.0, max_new_tokens=20, no_repeat_ngram_size=2)

    def repeated(settings):
        text = generate_samples(model, tokenizer, settings, 0)[0].text
        ids = tokenizer(text)["input_ids"]
        pairs = list(pairwise(ids))
        return len(pairs) - len(set(pairs))

    assert repeated(ruled) < repeated(plain)


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
