"""Is a from-scratch model equal to HuggingFace's? Compare them in everything that can be observed.

Both sides read the same checkpoint, see the same batches and use the same attention kernel. What is
compared, each as a row with the largest absolute difference:

- loading: the weights found in the checkpoint, and their values;
- saving: what each side writes, names, bits and config.json;
- hidden states after every layer, of encoder and decoder;
- attention maps of every layer and kind, beside those of HuggingFace's eager attention (its fused
  kernels return none);
- outputs (logits, pooled vectors, loss), and the cache: keys and values of every layer;
- gradients of every parameter;
- half precision: outputs in bfloat16 and float16, finite and equal;
- generation: tokens and logits, greedy, by beams and sampled, with and without cache, with one of
  fixed size, and a text read piece by piece;
- after 10 SGD steps, then after 10 AdamW steps, with the model's own dropout: losses, outputs,
  parameters, and buffers such as the statistics of batch norms.

Texts are padded right and left, with a row that is all padding (whose values must be finite and
equal too), and not padded; images have the config's size and, where the model takes them, others.

Tolerances, for float32: values may differ by 1e-5, or by 1e-5 of the largest reference value of the
row where that is above 1. Gradients may be small, so theirs is 1e-5 of the largest value of the row
(at least 1e-6 of the largest of the model), never more than the above. In half precision outputs
may differ by 4 units in the last place (2^-7 in bfloat16, 2^-10 in float16) of the largest or of 1.
Generated tokens must be the same, and counts 0.

AdamW divides a gradient by its size, and so makes steps of the rounding noise where there is none
(a bias of the keys shifts all scores of a query alike). Its epsilon is 1e-4, far above that noise.

`check_checkpoint` compares a checkpoint; `check_architecture` tiny random models of an architecture
over its heads, variants of its config and attention implementations.
"""

from scratch_models.parity.check import (
    COMPARISONS,
    check_checkpoint,
    check_pair,
    compare_computing,
)
from scratch_models.parity.forward import compare_forward
from scratch_models.parity.generation import compare_generation
from scratch_models.parity.gradients import compare_gradients
from scratch_models.parity.grid import check_architecture
from scratch_models.parity.inputs import example_batches
from scratch_models.parity.loading import (
    ParityPair,
    checkpoint_head,
    classes_to_compare,
    compare_loading,
    load_pair,
    read_config,
)
from scratch_models.parity.precision import compare_half_precision
from scratch_models.parity.report import ParityReport, ParityRow
from scratch_models.parity.saving import compare_saving
from scratch_models.parity.training import compare_training

__all__ = [
    "COMPARISONS",
    "ParityPair",
    "ParityReport",
    "ParityRow",
    "check_architecture",
    "check_checkpoint",
    "check_pair",
    "checkpoint_head",
    "classes_to_compare",
    "compare_computing",
    "compare_forward",
    "compare_generation",
    "compare_gradients",
    "compare_half_precision",
    "compare_loading",
    "compare_saving",
    "compare_training",
    "example_batches",
    "load_pair",
    "read_config",
]
