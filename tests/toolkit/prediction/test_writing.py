"""Models that write: translations and texts that go on, equal to transformers' own generation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
    pipeline,
)

from toolkit.data.byte_bpe import train_byte_bpe
from toolkit.data.joint_bpe import train_joint_bpe
from toolkit.errors import UserError
from toolkit.prediction import Options, open_model, predict

from .conftest import Finished

TEXTS = ["3 plus 12", "", "10 plus 1", "7 plus 7 plus 7", "　", "3 plus 12"]
PROMPTS = ["房间很干净", "", "早餐", "服务员的态度非常好，", "早餐"]


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "marian"
    tokenizer = train_joint_bpe([*TEXTS, "3加12", "10加1"], 300)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MarianMTModel(
            MarianConfig(
                vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1,
                encoder_ffn_dim=24, decoder_ffn_dim=24, encoder_attention_heads=2,
                decoder_attention_heads=2, max_position_embeddings=40, init_std=0.5,
                pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
                decoder_start_token_id=tokenizer.pad_token_id, forced_eos_token_id=None,
            )
        )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "gpt2"
    tokenizer = train_byte_bpe(PROMPTS, 300)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=len(tokenizer), n_positions=64, n_embd=16, n_layer=2, n_head=2,
                initializer_range=0.3, bos_token_id=tokenizer.bos_token_id,
                eos_token_id=tokenizer.eos_token_id,
            )
        )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize("beams", [1, 3])
def test_translations_are_those_of_generate(marian: Path, implementation: str, beams: int) -> None:
    options = Options(implementation=implementation, beams=beams, max_new_tokens=9, batch_size=2)
    answers = predict(open_model(str(marian), options), TEXTS).answers
    model = AutoModelForSeq2SeqLM.from_pretrained(marian)
    tokenizer = AutoTokenizer.from_pretrained(marian)
    for text, answer in zip(TEXTS, answers, strict=True):
        if not text.strip():
            assert answer == {"prediction": "", "prediction_note": "no text"}
            continue
        ids = model.generate(
            **tokenizer([text], return_tensors="pt"), num_beams=beams, max_new_tokens=9
        )
        [expected] = tokenizer.batch_decode(ids, skip_special_tokens=True)
        assert answer == {"prediction": expected.strip()}
    assert any(answer["prediction"] for answer in answers)


def test_three_lines_in_three_lines_out(
    toolkit_command: Callable[..., Finished], marian: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.txt"
    done = toolkit_command("predict", marian, "--output", output, "--max-new-tokens", "6",
                           stdin=b"3 plus 12\n\n10 plus 1\n")  # fmt: skip
    assert done.status == 0, done.err
    lines = output.read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4
    assert lines[1] == lines[3] == ""
    assert lines[0] != ""


def test_a_prefix_goes_before_the_text(marian: Path) -> None:
    whole, prefixed = (
        predict(open_model(str(marian), Options(prefix=prefix, max_new_tokens=9)), [text]).answers
        for prefix, text in ((None, "3 plus 12"), ("3 plus ", "12"))
    )
    assert whole == prefixed


@pytest.mark.parametrize("how", [{"source_language": "en"}, {"target_language": "zh"}])
def test_one_language_without_the_other(marian: Path, how: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="Give both --source-language and --target-language"):
        open_model(str(marian), Options(**how))


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_texts_go_on_as_in_the_pipeline(gpt2: Path, implementation: str) -> None:
    options = Options(implementation=implementation, max_new_tokens=12, batch_size=2)
    answers = predict(open_model(str(gpt2), options), PROMPTS).answers
    generate = pipeline(
        "text-generation", model=AutoModelForCausalLM.from_pretrained(gpt2),
        tokenizer=AutoTokenizer.from_pretrained(gpt2),
    )  # fmt: skip
    how: dict[str, Any] = {"max_new_tokens": 12, "do_sample": False, "return_full_text": False}
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        if prompt:
            assert answer["prediction"] == generate(prompt, **how)[0]["generated_text"]
            assert answer["ended"] is False
        else:
            assert answer["prediction"] == ""
            assert answer["prediction_note"] == "no text"
    assert answers[2] == answers[4]


def test_draws_are_repeated_by_the_seed(gpt2: Path) -> None:
    def drawn(seed: int) -> list[str]:
        options = Options(temperature=1.0, top_p=0.9, seed=seed, max_new_tokens=12)
        return [a["prediction"] for a in predict(open_model(str(gpt2), options), PROMPTS).answers]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_what_exceeds_the_positions(gpt2: Path) -> None:
    model = open_model(str(gpt2), Options(max_new_tokens=60))
    [answer] = predict(model, ["早餐" * 20]).answers
    assert answer["prediction_note"].startswith("read the last 5 of ")
    with pytest.raises(UserError, match="64 positions"):
        open_model(str(gpt2), Options(max_new_tokens=65))
    with pytest.raises(UserError, match="--temperature"):
        open_model(str(gpt2), Options(temperature=-1))
