"""The Transformer: encoder and decoder together, and with the output layer.

Equal to HuggingFace's `MarianModel` and `MarianMTModel` in every value and gradient; the package's
docstring says which part is where in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    EncoderDecoderCache,
    GenerationMixin,
    MarianConfig,
)
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutput,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import can_return_tuple

from scratch_models.models.transformer import mapping  # noqa: F401  (registers the name table)
from scratch_models.models.transformer.stacks import (
    ScratchTransformerDecoder,
    ScratchTransformerEncoder,
    ScratchTransformerPreTrainedModel,
)


def shift_right(labels: Tensor, config: MarianConfig) -> Tensor:
    """What the decoder reads to predict `labels` [batch, length]: the start, then all but the last.

    Raises:
        ValueError: without `pad_token_id` (for labels of -100) or `decoder_start_token_id`.
    """
    start, padding = config.decoder_start_token_id, config.pad_token_id
    if start is None or padding is None:
        raise ValueError(
            f"config has decoder_start_token_id {start} and pad_token_id {padding}: both are "
            "needed to make decoder inputs from labels."
        )
    shifted = labels.roll(1, dims=1)
    shifted[:, 0] = start
    return shifted.masked_fill(shifted == -100, padding)


class ScratchTransformerModel(ScratchTransformerPreTrainedModel):
    """Encoder and decoder (figure 1 without the output layer)."""

    huggingface_class: ClassVar[str | None] = "MarianModel"
    encoder_class: ClassVar[type[ScratchTransformerEncoder]] = ScratchTransformerEncoder
    decoder_class: ClassVar[type[ScratchTransformerDecoder]] = ScratchTransformerDecoder

    def __init__(self, config: MarianConfig) -> None:
        super().__init__(config)
        if config.share_encoder_decoder_embeddings:
            self.embedding = nn.Embedding(
                config.vocab_size, config.d_model, padding_idx=config.pad_token_id
            )
            self._tied_weights_keys = {
                "decoder.embeddings.token.weight": "embedding.weight",
                "encoder.embeddings.token.weight": "embedding.weight",
            }
        self.encoder = self.encoder_class(config)
        self.decoder = self.decoder_class(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The token embedding of the encoder, which may be the decoder's too."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replace the token embedding of the encoder, and the decoder's where they share it."""
        self.encoder.set_input_embeddings(value)
        if self.config.share_encoder_decoder_embeddings:
            self.embedding = value
            self.decoder.set_input_embeddings(value)

    def resize_decoder_token_embeddings(self, new_num_tokens: int) -> nn.Embedding:
        """Resize the vocabulary of the decoder alone.

        Raises:
            ValueError: where encoder and decoder share their embeddings.
        """
        check_separate(self.config)
        new = self._get_resized_embeddings(self.decoder.get_input_embeddings(), new_num_tokens)
        self.decoder.set_input_embeddings(new)
        self.config.decoder_vocab_size = new.num_embeddings
        self.tie_weights()
        return new

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Any = None,
        encoder_outputs: BaseModelOutput | Sequence[Any] | None = None,
        cache: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqModelOutput:
        """Read a source, and a target up to every position.

        Args:
            input_ids: source tokens [batch, source length]; or `inputs_embeds`
                [batch, source length, d_model], taken unscaled; or `encoder_outputs`.
            attention_mask: of the source [batch, source length], any dtype, zero hides.
            decoder_input_ids: target tokens [batch, length]; or `decoder_inputs_embeds`
                [batch, length, d_model], scaled as tokens are.
            decoder_attention_mask: of the target [batch, length], zero hides; the future always is.
            encoder_outputs: what the encoder made: its output, or a tuple whose first entry is
                [batch, source length, d_model].
            cache: keys and values of earlier steps; decoder inputs are the new tokens only.
            inputs_embeds: see `input_ids`.
            decoder_inputs_embeds: see `decoder_input_ids`.
            use_cache: return a cache; None is `config.use_cache`.
            **kwargs: `output_hidden_states`, `output_attentions` (real weights under every
                attention implementation), `return_dict`.

        Returns:
            `last_hidden_state` [batch, length, d_model] of the decoder, `cache`, and what the
            encoder made.

        Raises:
            ValueError: without or with two inputs of a kind, or for a mask that does not fit.
        """
        encoded: Any = encoder_outputs
        if encoder_outputs is None:
            encoded = self.encoder(input_ids, attention_mask, inputs_embeds, **kwargs)
        elif not isinstance(encoder_outputs, BaseModelOutput):
            encoded = BaseModelOutput(*encoder_outputs[:3])
        decoded = self.decoder(
            decoder_input_ids,
            decoder_attention_mask,
            encoded.last_hidden_state,
            attention_mask,
            cache=cache,
            inputs_embeds=decoder_inputs_embeds,
            use_cache=use_cache,
            **kwargs,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoded.last_hidden_state,
            cache=decoded.cache,
            decoder_hidden_states=decoded.hidden_states,
            decoder_attentions=decoded.attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=encoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
            encoder_attentions=encoded.attentions,
        )


def check_separate(config: MarianConfig) -> None:
    """Raise ValueError if encoder and decoder share their embeddings."""
    if config.share_encoder_decoder_embeddings:
        raise ValueError(
            "encoder and decoder share their embeddings (share_encoder_decoder_embeddings): "
            "resize both with resize_token_embeddings."
        )


class ScratchTransformerForConditionalGeneration(
    ScratchTransformerPreTrainedModel, GenerationMixin
):
    """The Transformer with its output layer (§3.4): translates, summarises, answers."""

    huggingface_class: ClassVar[str | None] = "MarianMTModel"
    model_class: ClassVar[type[ScratchTransformerModel]] = ScratchTransformerModel
    _tied_weights_keys = {  # noqa: RUF012  (an instance may have its own)
        "lm_head.weight": "model.decoder.embeddings.token.weight"
    }
    # Checkpoints may hold them; they are never written, as they follow from a formula.
    _keys_to_ignore_on_save: ClassVar[list[str]] = [
        "model.encoder.embeddings.position.weight",
        "model.decoder.embeddings.position.weight",
    ]
    _keys_to_ignore_on_load_missing: ClassVar[list[str]] = [
        "final_logits_bias",
        *_keys_to_ignore_on_save,
    ]

    def __init__(self, config: MarianConfig) -> None:
        super().__init__(config)
        self.model = self.model_class(config)
        target_vocab_size = config.decoder_vocab_size
        if config.share_encoder_decoder_embeddings:
            target_vocab_size = config.vocab_size
            tied = (
                "lm_head.weight",
                "model.decoder.embeddings.token.weight",
                "model.encoder.embeddings.token.weight",
            )
            self._tied_weights_keys = dict.fromkeys(tied, "model.embedding.weight")
        self.final_logits_bias = nn.Buffer(torch.zeros(1, target_vocab_size))
        self.lm_head = nn.Linear(config.d_model, target_vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if module is self:
            init.zeros_(self.final_logits_bias)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Labels [batch, length] -> decoder inputs [batch, length]; see `shift_right`."""
        return shift_right(labels, self.config)

    def resize_token_embeddings(
        self,
        new_num_tokens: int | None = None,
        pad_to_multiple_of: int | None = None,
        mean_resizing: bool = True,
    ) -> nn.Embedding:
        """As its parent's; the output layer follows a shared vocabulary."""
        embedding = super().resize_token_embeddings(
            new_num_tokens, pad_to_multiple_of, mean_resizing
        )
        if self.config.share_encoder_decoder_embeddings:
            self._follow_vocabulary(embedding.num_embeddings)
        return embedding

    def _resize_token_embeddings(
        self, new_num_tokens: int, pad_to_multiple_of: int | None = None, *args: Any
    ) -> nn.Embedding:
        """The base class's without the output layer: it is tied, or the decoder's."""
        embedding = self._get_resized_embeddings(
            self.get_input_embeddings(), new_num_tokens, pad_to_multiple_of, *args
        )
        self.set_input_embeddings(embedding)
        return embedding

    def resize_decoder_token_embeddings(self, new_num_tokens: int) -> nn.Embedding:
        """Resize the vocabulary of the decoder alone, with its output layer.

        Raises:
            ValueError: where encoder and decoder share their embeddings.
        """
        check_separate(self.config)
        decoder = self.model.decoder
        embedding = self._get_resized_embeddings(decoder.get_input_embeddings(), new_num_tokens)
        decoder.set_input_embeddings(embedding)
        if not self.config.tie_word_embeddings:
            self.lm_head = self._get_resized_lm_head(self.lm_head, embedding.num_embeddings)
        self.tie_weights()
        self._follow_vocabulary(embedding.num_embeddings)
        return embedding

    def _follow_vocabulary(self, vocab_size: int) -> None:
        """Config and output bias after the decoder's vocabulary: new entries have bias 0."""
        self.config.decoder_vocab_size = vocab_size
        extra = vocab_size - self.final_logits_bias.shape[1]
        self.final_logits_bias = nn.Buffer(F.pad(self.final_logits_bias, (0, extra)))

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Any = None,
        encoder_outputs: BaseModelOutput | Sequence[Any] | None = None,
        cache: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Arguments as `ScratchTransformerModel`; labels [batch, length], -100 where none is asked.

        With labels the decoder reads them shifted by one, unless it is given other inputs, and no
        cache is made.

        Returns `logits` [batch, length, vocabulary] and, with labels, the mean `loss`.
        """
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None and decoder_inputs_embeds is None:
                decoder_input_ids = shift_right(labels, self.config)
        outputs = self.model(
            input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            cache=cache,
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        decoded = {key: value for key, value in outputs.items() if key != "last_hidden_state"}
        logits = self.lm_head(outputs.last_hidden_state) + self.final_logits_bias
        loss = None if labels is None else self.token_loss(logits, labels)
        return Seq2SeqLMOutput(loss=loss, logits=logits, **decoded)

    def token_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean cross entropy of the labels that are asked for.

        Args:
            logits: [batch, length, vocabulary].
            labels: [batch, length], -100 where none is asked.
        """
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())
