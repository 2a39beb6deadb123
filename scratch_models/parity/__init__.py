"""Is a from-scratch model equal to HuggingFace's? Compare them in everything that can be observed.

Both sides read the same checkpoint, see the same batches and use the same attention kernel. What is
compared, each as a row with the largest absolute difference:

- the weights as loaded, the hidden states after every layer, the attention maps of every layer
  (HuggingFace's from its eager attention, as its fused kernels return none), outputs and loss;
- the gradient of every parameter;
- losses, outputs and parameters after ten SGD, then ten AdamW steps with the model's own dropout;
- what each side saves: names, bits and config.json.

Tolerances, for float32: values may differ by 1e-5, or by 1e-5 of the largest reference value of the
row where that is above 1. Gradients may be small, so theirs is 1e-5 of the largest value of the row
(at least 1e-6 of the largest of the model), never more than the above. Counts must be 0.

A bias of the keys shifts all scores of a query alike and so has no gradient at all; AdamW divides
the rounding noise by itself and makes steps of it. Such parameters, whose largest gradient is below
1e-6 of the model's, are compared by gradient and after SGD only.
"""

from scratch_models.parity.check import check_checkpoint, check_pair, compare_computing
from scratch_models.parity.forward import compare_forward
from scratch_models.parity.gradients import compare_gradients
from scratch_models.parity.inputs import example_batches
from scratch_models.parity.loading import ParityPair, checkpoint_head, compare_loading, load_pair
from scratch_models.parity.report import ParityReport, ParityRow
from scratch_models.parity.saving import compare_saving
from scratch_models.parity.training import compare_training

__all__ = [
    "ParityPair",
    "ParityReport",
    "ParityRow",
    "check_checkpoint",
    "check_pair",
    "checkpoint_head",
    "compare_computing",
    "compare_forward",
    "compare_gradients",
    "compare_loading",
    "compare_saving",
    "compare_training",
    "example_batches",
    "load_pair",
]
