"""Models and tokenizers that translate: new ones, and pretrained Marian, mBART, T5 and others."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.torch import load_file
from torch import nn
from transformers import AutoModelForSeq2SeqLM, MarianMTModel

from scratch_models.hub.auto import scratch_class
from scratch_models.models.paper_transformer.modeling import (
    ScratchPaperTransformerConfig,
    ScratchPaperTransformerForConditionalGeneration,
    to_marian,
)
from toolkit.config import check_range
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.fine_tuning import FineTuningConfig, Method, save_trained
from toolkit.modeling import Implementation, load_tokenizer, read_config
from toolkit.outcome import describe_model
from toolkit.run import Run
from toolkit.translation import GenerationSettings, Translation
from toolkit.unused_settings import say_unused

HEAD = "seq2seq-lm"


@dataclass
class TransformerShape:
    """A Transformer to be trained from random weights."""

    encoder_layers: int = 3
    """Layers that read the source."""
    decoder_layers: int = 3
    """Layers that write the target."""
    d_model: int = 256
    """Width."""
    feed_forward: int = 1024
    """Width inside the feed-forward part."""
    heads: int = 4
    """Attention heads; they divide the width."""
    vocabulary: int = 8000
    """Pieces of the shared vocabulary, 259 special tokens and bytes among them."""
    dropout: float = 0.1
    """Of embeddings and of what every layer adds (Vaswani et al. 2017, §5.4)."""


@dataclass(frozen=True)
class Translator:
    """A model, its tokenizer, and what is put before every source text."""

    model: Any
    tokenizer: Any
    implementation: Implementation
    prefix: str = ""

    def describe(self, model: Any, name: str, method: str) -> dict[str, Any]:
        """The `model` section of a summary.

        Args:
            model: what became of ours in training, its adapter still on it.
            name: of the model, in reports.
        """
        described = describe_model(model, name, self.implementation, method)
        return described | {"prefix": self.prefix}


def decide_method(run: Run[Any]) -> Method:
    """`method_for` the run's settings; says which of them it does not use.

    Raises:
        UserError: likewise.
    """
    method = method_for(run.config.model, run.config.method)
    say_unused(run, method, trains=method != "frozen")
    return method


def method_for(model: str | None, method: Method | None) -> Method:
    """The method that is asked for, or the one that goes with a checkpoint or with none.

    Raises:
        UserError: a new model that is to be fine-tuned, or a checkpoint to be made anew.
    """
    if method is None:
        return "from_scratch" if model is None else "full"
    if model is None and method != "from_scratch":
        raise UserError(
            f"--method {method} needs a pretrained model: give its folder or Hub name with --model."
        )
    if model is not None and method == "from_scratch":
        raise UserError(
            f"--method from_scratch makes a new model of the size --shape; leave --model {model} "
            "out, or choose full, lora, dora or frozen."
        )
    return method


def new_transformer(
    shape: TransformerShape, tokenizer: Any, implementation: Implementation, positions: int
) -> nn.Module:
    """A Transformer with random weights and one embedding for source, target and output (§3.4).

    `scratch` is the paper's layout, `hf` HuggingFace's Marian class with the same weights in its
    order: the same function of the same random state.

    Args:
        positions: longest text in tokens, on either side.

    Raises:
        UserError: a size below 1, or heads that do not divide the width.
    """
    for key in ("encoder_layers", "decoder_layers", "d_model", "feed_forward", "heads"):
        check_range(f"shape.{key}", getattr(shape, key), 1, 1 << 20)
    check_range("shape.dropout", shape.dropout, 0, 1)
    if shape.d_model % shape.heads or shape.d_model % 2:
        raise UserError(
            f"--shape.d_model {shape.d_model}: expected an even number that --shape.heads "
            f"{shape.heads} divides"
        )
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "encoder_layers": shape.encoder_layers,
        "decoder_layers": shape.decoder_layers,
        "d_model": shape.d_model,
        "encoder_ffn_dim": shape.feed_forward,
        "decoder_ffn_dim": shape.feed_forward,
        "encoder_attention_heads": shape.heads,
        "decoder_attention_heads": shape.heads,
        "dropout": shape.dropout,
        "activation_function": "relu",
        "max_position_embeddings": positions,
        # With embeddings scaled by sqrt(d_model), tokens then enter with variance 1.
        "init_std": shape.d_model**-0.5,
        "scale_embedding": True,
        "pad_token_id": tokenizer.pad_token_id,
        "decoder_start_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "forced_eos_token_id": None,
    }
    model = ScratchPaperTransformerForConditionalGeneration(
        ScratchPaperTransformerConfig(**settings)
    )
    return _as_huggingface(model) if implementation == "hf" else model


def _as_huggingface(model: ScratchPaperTransformerForConditionalGeneration) -> nn.Module:
    # Random weights of its own would meet the positions in another order of dimensions, so equal
    # seeds would train different models.
    marian = to_marian(model)
    loaded = MarianMTModel(marian.config)
    with TemporaryDirectory() as folder:
        marian.save_pretrained(folder)
        # Not from_pretrained, after which HuggingFace's class would train its sines and cosines.
        found = loaded.load_state_dict(load_file(f"{folder}/model.safetensors"), strict=False)
    tied = set(loaded.all_tied_weights_keys)
    assert not found.unexpected_keys
    assert all(name in tied or "embed_positions" in name for name in found.missing_keys)
    return loaded


def portable(model: Any) -> Any:
    """What is saved: a model of the paper's layout as the Marian that computes the same."""
    if isinstance(model, ScratchPaperTransformerForConditionalGeneration):
        return to_marian(model)
    return model


def load_translator(
    name: str,
    settings: FineTuningConfig,
    languages: tuple[str, str],
    *,
    codes: tuple[str | None, str | None] = (None, None),
    prefix: str | None = None,
) -> Translator:
    """A pretrained model with its tokenizer, told the languages.

    Args:
        settings: how to load it; `scratch` takes HuggingFace's class, and says so, where there is
            no architecture of ours.
        languages: codes of source and target, such as "en" and "zh".
        codes: what the tokenizer calls them (mBART: en_XX, zh_CN; NLLB: eng_Latn, zho_Hans); None:
            found by the languages.
        prefix: put before every source; None takes the checkpoint's own for these languages (T5).

    Raises:
        UserError: no model there, one that cannot translate, or languages that it does not know.
    """
    tokenizer = load_tokenizer(name)
    config = read_config(name)
    if not _can_translate(config):
        raise UserError(
            f"{name}: {config.model_type} cannot translate: it is no encoder-decoder of texts. "
            "Give a Marian, mBART, NLLB or T5 checkpoint, or leave --model out for a new model."
        )
    if settings.implementation == "scratch" and not _have(config.model_type):
        notify(f"{name}: no from-scratch {config.model_type}; HuggingFace's class is used.")
        settings = dataclasses.replace(settings, implementation="hf")
    model: Any = settings.load(name, HEAD).model
    if hasattr(tokenizer, "src_lang"):
        _set_languages(name, model, tokenizer, languages, codes)
    elif codes != (None, None):
        raise UserError(f"{name}: its tokenizer has no language codes; leave them out.")
    if prefix is None:
        tasks = getattr(config, "task_specific_params", None) or {}
        task = tasks.get("translation_{}_to_{}".format(*languages), {})
        prefix = str(task.get("prefix", ""))
    return Translator(model, tokenizer, settings.implementation, prefix)


def _can_translate(config: Any) -> bool:
    return _have(config.model_type) or type(config) in AutoModelForSeq2SeqLM._model_mapping


def _have(model_type: str) -> bool:
    try:
        scratch_class(model_type, HEAD)
    except ValueError:
        return False
    return True


def _set_languages(
    name: str,
    model: Any,
    tokenizer: Any,
    languages: tuple[str, str],
    asked: tuple[str | None, str | None],
) -> None:
    """Tell tokenizer and generation which languages to read and write."""
    known = [str(token) for token in tokenizer.all_special_tokens]
    codes = [
        _language_code(name, language, code, known)
        for language, code in zip(languages, asked, strict=True)
    ]
    tokenizer.src_lang, tokenizer.tgt_lang = codes
    target = tokenizer.convert_tokens_to_ids(codes[1])
    if type(tokenizer).__name__.startswith("MBartTokenizer"):
        # The first mBART: the decoder starts from the language itself.
        model.config.decoder_start_token_id = target
        model.generation_config.decoder_start_token_id = target
    else:
        model.generation_config.forced_bos_token_id = target


def _language_code(name: str, language: str, asked: str | None, known: list[str]) -> str:
    if asked is not None:
        if asked in known:
            return asked
        raise UserError(f"{name}: its tokenizer has no language {asked!r}: {', '.join(known)}.")
    fitting = [token for token in known if token == language or token.startswith(f"{language}_")]
    if len(fitting) != 1:
        found = f"several ({', '.join(fitting)})" if fitting else "none"
        raise UserError(
            f"{name}: of its language codes, {found} stand for {language!r}. Give them with "
            f"--source_code and --target_code; it knows {', '.join(known)}."
        )
    return fitting[0]


def save_translator(run: Run[Any], model: Any, tokenizer: Any, objective: Translation) -> None:
    """Save a translator that HuggingFace's classes load, and that translates as it was tested."""
    set_generation(model, objective.generation, objective.width)
    save_trained(run, model, tokenizer, convert=portable)


def set_generation(model: Any, settings: GenerationSettings, most: int) -> None:
    """Let the model, and what is saved of it, translate as it is tested.

    Args:
        most: tokens of any translation.
    """
    generation = model.generation_config
    generation.num_beams = settings.beams
    generation.length_penalty = settings.length_penalty
    generation.max_length = None
    generation.max_new_tokens = most
