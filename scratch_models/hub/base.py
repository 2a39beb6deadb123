"""What every from-scratch model has in common: reading and writing HuggingFace's checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from scratch_models.hub.mapping import adapter_key_mapping, saving_table, to_own_names
from scratch_models.hub.pipelines import accept_our_models
from scratch_models.layers.packing import Packing, check_packing

_PUSH_OPTIONS = ("repo_id", "commit_message", "private", "create_pr", "revision")

accept_our_models()


class ScratchPreTrainedModel(PreTrainedModel):
    """A model with our own modules and names that lives on HuggingFace's checkpoints.

    Loads what HuggingFace's class of the same architecture loads and saves what that class would
    save, key for key and bit for bit.
    """

    huggingface_class: ClassVar[str | None] = None
    """Name of the class in transformers this one equals; None where there is no counterpart."""

    accepts_loss_kwargs = False
    """Told to transformers' Trainer: losses are means, so it must divide when it accumulates."""

    can_pack: ClassVar[bool] = False
    """Whether padded batches can be computed without their padding."""
    packing: Packing = "auto"
    """Whether padded batches are computed without their padding; see `set_packing`."""

    def __init__(self, config: PreTrainedConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        expected = self.config_class.model_type
        if config.model_type != expected:
            raise ValueError(
                f"{type(self).__name__} is built from a config of type {expected!r}, "
                f"not {config.model_type!r}."
            )

    def set_packing(self, packing: Packing) -> None:
        """Choose whether padded batches are computed without their padding, where that is possible.

        Args:
            packing: "auto" (the default) or "off": then outputs at padding, and the random numbers
                of dropout, are HuggingFace's too.

        Raises:
            ValueError: another word.
        """
        check_packing(packing)
        for module in self.modules():
            if isinstance(module, ScratchPreTrainedModel):
                module.packing = packing

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike | None,
        *model_args: Any,
        config: PreTrainedConfig | str | os.PathLike | None = None,
        packing: Packing = "auto",
        **kwargs: Any,
    ) -> Any:
        """As in transformers, but a checkpoint of another architecture is refused.

        transformers itself leaves every weight of such a model random and goes on.

        Args:
            packing: for `set_packing`.

        Raises:
            ValueError: if the checkpoint's `model_type` is not this class's.
        """
        if config is None and pretrained_model_name_or_path is not None:
            _check_architecture(cls, pretrained_model_name_or_path, kwargs)
        loaded = super().from_pretrained(
            pretrained_model_name_or_path, *model_args, config=config, **kwargs
        )
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        for module in model.modules():
            if getattr(module, "is_fixed", False):
                module.requires_grad_(False)
        model.set_packing(packing)
        return loaded

    def save_pretrained(
        self,
        save_directory: str | os.PathLike,
        is_main_process: bool = True,
        state_dict: dict[str, Any] | None = None,
        push_to_hub: bool = False,
        **kwargs: Any,
    ) -> None:
        """Save in HuggingFace's format: its weight names, its class in `architectures`.

        A process that has never heard of this package loads the folder with the Auto classes.
        """
        hub_kwargs = {key: kwargs.pop(key) for key in _PUSH_OPTIONS if key in kwargs}
        used_at_load: Any = getattr(self, "_weight_conversions", None)
        self._weight_conversions = saving_table(self)
        try:
            super().save_pretrained(save_directory, is_main_process, state_dict, **kwargs)
        finally:
            self._weight_conversions = used_at_load
        self._save_config(save_directory, is_main_process)
        if push_to_hub and is_main_process:
            # Only now, as transformers would upload the config before it names the right class.
            folder_name = os.path.basename(os.path.normpath(save_directory))
            repo_id = hub_kwargs.pop("repo_id", folder_name)
            self.push_to_hub(repo_id, token=kwargs.get("token"), **hub_kwargs)

    def _save_config(self, save_directory: str | os.PathLike, is_main_process: bool) -> None:
        """Name HuggingFace's class in config.json: pipelines and servers choose by it."""
        adapters_only = getattr(self, "_hf_peft_config_loaded", False)
        if self.huggingface_class is None or adapters_only:
            return
        self.config.architectures = [self.huggingface_class]
        if self.should_save_on_this_rank(is_main_process):
            self.config.save_pretrained(save_directory)

    @property
    def _checkpoint_conversion_mapping(self) -> dict[str, str]:
        """Read by peft: the weights of adapters trained on HuggingFace's class get our names.

        Which layers they are on peft takes from the adapter's settings, where it finds only those
        that bear the same name here; `toolkit.adapters.load_adapter` translates the settings too.
        """
        return adapter_key_mapping(self)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """As in torch, for weights under HuggingFace's names as well as under ours.

        transformers' Trainer reads its checkpoints, in HuggingFace's names, back this way.
        """
        own = to_own_names(self, dict(state_dict))
        return super().load_state_dict(own, strict=strict, assign=assign)

    def _get_name(self) -> str:
        """Asked by transformers' Trainer: it shifts smoothed labels for causal models it knows."""
        return self.huggingface_class or super()._get_name()

    def __repr__(self) -> str:
        return super().__repr__().replace(self._get_name(), type(self).__name__, 1)

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        reset_buffers = getattr(module, "reset_buffers", None)
        if callable(reset_buffers):
            reset_buffers()


def _check_architecture(
    cls: type[ScratchPreTrainedModel], name: str | os.PathLike, kwargs: dict[str, Any]
) -> None:
    hub_kwargs = (
        "cache_dir",
        "force_download",
        "local_files_only",
        "token",
        "revision",
        "subfolder",
    )
    try:
        config, _ = PreTrainedConfig.get_config_dict(
            name, **{k: v for k, v in kwargs.items() if k in hub_kwargs}
        )
    except OSError:
        return  # no config to judge by: transformers knows what else the folder may be, or says so
    found, expected = config.get("model_type"), cls.config_class.model_type
    # Folders older than the field have none; their class can only be judged by their weights.
    if found is not None and found != expected:
        raise ValueError(
            f"{name} holds a model of type {found!r} (config.json) but {cls.__name__} reads "
            f"{expected!r}: choose the class of that architecture."
        )
