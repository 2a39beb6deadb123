"""transformers' pipelines give the answers they give with HuggingFace's class, and say no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForSequenceClassification,
    BertForSequenceClassification,
    BertTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    ViTImageProcessor,
    pipeline,
)

from scratch_models import ScratchBertForTokenClassification, ScratchGPT2LMHeadModel
from scratch_models.models.gpt2.parity_grid import TINY as TINY_GPT2

TEXTS = ["好 a 书 b", "a", "坏 b c"]

# The task of a head, and what a pipeline is asked.
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "masked-lm": ("fill-mask", {"top_k": 4}),
    "sequence-classification": ("text-classification", {"top_k": None}),
    "token-classification": ("token-classification", {}),
    "causal-lm": ("text-generation", {"max_new_tokens": 6, "do_sample": False}),
    "image-classification": ("image-classification", {"top_k": 3}),
}


NAMES = {0: "负面", 1: "中性", 2: "正面"}


@pytest.fixture(scope="module")
def word_tokenizer() -> BertTokenizer:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"好坏书abcdefg"]
    return BertTokenizer(vocab={word: number for number, word in enumerate(words)})


@pytest.fixture(scope="module")
def byte_tokenizer() -> PreTrainedTokenizerFast:
    """GPT-2's kind of tokenizer, of a size a tiny model has."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=58, special_tokens=["<|pad|>", "<|x|>", "<|end|>"])
    backend.train_from_iterator([*TEXTS, "a b c d"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<|pad|>", eos_token="<|end|>"
    )


@pytest.fixture
def parts(word_tokenizer, byte_tokenizer) -> Callable[[Any], dict[str, Any]]:
    """What a pipeline reads its input with."""

    def build(case) -> dict[str, Any]:
        if case.reads_images:
            return {"image_processor": ViTImageProcessor(size={"height": 16, "width": 16})}
        reads_bytes = case.architecture.model_type == "gpt2"
        return {"tokenizer": byte_tokenizer if reads_bytes else word_tokenizer}

    return build


@pytest.fixture
def answers(parts, said, capfd) -> Iterator[Callable[[Any, Any, str, dict[str, Any]], Any]]:
    def ask(case, model, task: str, options: dict[str, Any]) -> Any:
        inputs: Any = TEXTS
        if case.reads_images:
            pixels = np.random.default_rng(0).integers(0, 256, (2, 20, 24, 3), dtype=np.uint8)
            inputs = [Image.fromarray(image) for image in pixels]
        elif task == "fill-mask":
            inputs = [f"{text} [MASK] e" for text in TEXTS]
        return pipeline(task, model=model, device="cpu", **parts(case))(inputs, **options)

    yield ask
    assert "not supported" not in said.text
    printed = capfd.readouterr()
    assert "not supported" not in printed.out + printed.err


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal in everything but the last digits of numbers."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for own, other in zip(ours, theirs, strict=True):
            assert_same(own, other)
    elif isinstance(theirs, float | np.floating):
        assert ours == pytest.approx(theirs, abs=1e-4)
    else:
        assert ours == theirs


def test_answers_are_those_of_huggingface_s_class(piped, answers) -> None:
    features = "image-feature-extraction" if piped.reads_images else "feature-extraction"
    task, options = TASKS.get(piped.head, (features, {}))
    names = {"id2label": NAMES} if "class" in piped.head else {}
    ours, theirs = (answers(piped, m, task, options) for m in piped.pair(attn="sdpa", **names))
    assert len(ours) == (2 if piped.reads_images else 3)
    assert_same(ours, theirs)


def test_architectures_of_our_own_answer_too(own_piped, answers) -> None:
    task, options = TASKS[own_piped.head]
    for answer in answers(own_piped, own_piped.fresh(id2label=NAMES), task, options):
        assert {choice["label"] for choice in answer} == set(NAMES.values())
        assert sum(choice["score"] for choice in answer) == pytest.approx(1.0)


def test_a_model_with_another_head_is_still_told_from_one_that_fits(
    word_tokenizer, tiny_config, said
) -> None:
    model = ScratchBertForTokenClassification(tiny_config())
    pipeline("text-classification", model=model, tokenizer=word_tokenizer, device="cpu")
    assert "'ScratchBertForTokenClassification' is not supported" in said.text


def test_what_transformers_says_of_other_models_is_not_touched(
    word_tokenizer, tiny_config, said
) -> None:
    class Mine(BertForSequenceClassification):
        pass

    model = Mine(tiny_config())
    pipeline("text-classification", model=model, tokenizer=word_tokenizer, device="cpu")
    assert "The model 'Mine' is not supported for text-classification" in said.text
    supported = AutoModelForSequenceClassification._model_mapping._model_mapping.values()
    assert "BertForSequenceClassification" in supported
    assert not any("Scratch" in str(name) for name in supported)


def test_sampling_in_a_pipeline_follows_the_seed(byte_tokenizer) -> None:
    config = GPT2Config(**TINY_GPT2)
    reference, scratch = GPT2LMHeadModel(config).eval(), ScratchGPT2LMHeadModel(config).eval()
    scratch.load_state_dict(reference.state_dict())
    texts = []
    for model in (scratch, reference):
        torch.manual_seed(7)
        generate = pipeline("text-generation", model=model, tokenizer=byte_tokenizer, device="cpu")
        texts.append(generate(TEXTS[:1], max_new_tokens=8, do_sample=True, temperature=1.5))
    assert texts[0] == texts[1]
