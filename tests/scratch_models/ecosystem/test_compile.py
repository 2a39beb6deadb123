"""torch.compile: the same numbers, in one graph where HuggingFace's class promises one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from transformers import GPT2Config

from scratch_models import ScratchGPT2LMHeadModel
from scratch_models.models.gpt2.parity_grid import TINY as TINY_GPT2


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def assert_same_values(compiled, model, batch) -> None:
    with torch.no_grad():
        expected, found = model(**batch), compiled(**batch)
    for key, value in expected.items():
        if isinstance(value, Tensor):
            torch.testing.assert_close(found[key], value, atol=1e-5, rtol=1e-5)


def one_graph(case) -> bool:
    reference = case.reference_class
    return reference is not None and reference._can_compile_fullgraph


def test_a_compiled_body_computes_the_same_in_one_graph(quick_body) -> None:
    compile_in_one_graph(quick_body)


@pytest.mark.slow
def test_compiled_bodies_compute_the_same_in_one_graph(body) -> None:
    compile_in_one_graph(body)


def compile_in_one_graph(body) -> None:
    model = body.fresh()
    assert model._can_compile_fullgraph or not one_graph(body)
    compiled = torch.compile(model, backend="eager", fullgraph=one_graph(body))
    assert_same_values(compiled, model, body.batch(model.config))


@pytest.mark.slow
def test_compiled_training_gives_the_same_gradients(one_head, gradients) -> None:
    model = one_head.fresh().train()
    batch = one_head.batch(model.config)
    model(**batch).loss.backward()
    expected = gradients(model)
    model.zero_grad()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=one_graph(one_head))
    compiled(**batch).loss.backward()
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_bodies_compiled_to_machine_code_compute_the_same(body) -> None:
    model = body.fresh()
    compiled = torch.compile(model, fullgraph=one_graph(body))
    assert_same_values(compiled, model, body.batch(model.config))


@pytest.mark.slow
def test_a_compiled_decoder_generates_the_same_with_a_cache_of_fixed_size() -> None:
    model = ScratchGPT2LMHeadModel(GPT2Config(**TINY_GPT2, pad_token_id=0)).eval()
    prompt = torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10]])
    options = {
        "attention_mask": (prompt > 0).long(),
        "max_new_tokens": 8,
        "do_sample": False,
        "cache_implementation": "static",
        "disable_compile": True,
    }
    expected = model.generate(prompt, **options)
    model.forward = torch.compile(model.forward, backend="eager", fullgraph=True)
    assert torch.equal(model.generate(prompt, **options), expected)
