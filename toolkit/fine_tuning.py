"""What of a pretrained model is trained, and how it is saved: settings that recipes share."""

# No `from __future__ import annotations` here: recipes inherit from this dataclass.
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from scratch_models import ScratchPreTrainedModel
from toolkit.adapters import LoraSettings, add_lora, merge, save_adapter
from toolkit.modeling import LoadedModel, load_pretrained
from toolkit.outcome import save_model
from toolkit.run import Run
from toolkit.training.freezing import freeze_encoder, freeze_lowest
from toolkit.training.sharding import gather_whole, is_divided

Method = Literal["full", "lora", "dora", "frozen", "from_scratch"]
ADAPTERS = ("lora", "dora")


@dataclass
class FineTuningConfig:
    """How to load a pretrained model, and which part of it to train."""

    implementation: Literal["scratch", "hf"] = "scratch"
    """Our own classes, or HuggingFace's, which know more architectures: the same results, another
    speed."""
    packing: Literal["auto", "off"] = "auto"
    """For our encoders of text: compute batches without their padding, or with it. The results are
    equal but for rounding and the random numbers of dropout."""
    dropout: float | None = None
    """Dropout of a pretrained model's hidden states and attention; null: its own."""
    freeze_layers: int | None = None
    """For --method full: leave the embeddings and the lowest so many layers as they are; 0 the
    embeddings alone."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    """For --method lora and dora."""
    allow_missing_weights: bool = False
    """Go on when a checkpoint lacks weights that are not the task's own."""

    def load(
        self,
        name: str,
        head: str,
        *,
        label_names: list[str] | None = None,
        tokenizer: Any = None,
    ) -> LoadedModel:
        """`toolkit.modeling.load_pretrained` with these settings."""
        loaded = load_pretrained(
            name,
            head,
            implementation=self.implementation,
            label_names=label_names,
            dropout=self.dropout,
            allow_missing_weights=self.allow_missing_weights,
            tokenizer=tokenizer,
        )
        self._set_packing(loaded.model)
        return loaded

    def choose_trained(self, model: Any, method: str, new_modules: list[str]) -> Any:
        """Exclude from training what the method leaves as it is; an adapter wraps the model.

        Args:
            method: ``frozen`` trains the head alone.
            new_modules: modules that no checkpoint has filled.

        Raises:
            UserError: the model has no such layers, or no head apart from an encoder.
        """
        self._set_packing(model)  # of one that was not loaded
        if method in ADAPTERS:
            return add_lora(model, self.lora, new_modules, dora=method == "dora")
        if method == "frozen":
            freeze_encoder(model)
        elif method == "full" and self.freeze_layers is not None:
            freeze_lowest(model, self.freeze_layers)
        return model

    def _set_packing(self, model: Any) -> None:
        if isinstance(model, ScratchPreTrainedModel):
            model.set_packing(self.packing)


def save_trained(
    run: Run[Any], model: Any, processor: Any, convert: Callable[[Any], Any] = lambda model: model
) -> None:
    """Save a trained model as a HuggingFace folder; an adapter by itself, and merged.

    Collective over all processes: weights that are divided among them are gathered.

    Args:
        processor: tokenizer or image processor.
        convert: makes what is saved of the whole model.
    """
    if is_divided(model):
        model = gather_whole(run.accelerator, model)
        if model is None:
            return
    model = convert(model)
    if hasattr(model, "peft_config"):
        save_adapter(run, model, processor)
        model = merge(model)
    save_model(run, model, processor)
