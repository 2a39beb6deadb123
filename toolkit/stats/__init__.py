"""What a test set can and cannot show: intervals, paired tests, how many examples it would take.

Every function works on plain numpy arrays of one entry per test example, so that two systems are
always compared on the same examples, pair by pair.
"""

from toolkit.stats.bootstrap import (
    bootstrap_interval,
    bootstrap_p_value,
    difference_interval,
    examples_needed_bootstrap,
    p_value_error,
    sacrebleu_p_value,
)
from toolkit.stats.classification import (
    macro_f1,
    macro_f1_draws,
    macro_f1_scores,
    macro_f1_statistics,
)
from toolkit.stats.crossed import compare_paired_seeds_and_examples, compare_seeds_and_examples
from toolkit.stats.draws import (
    BOOTSTRAP_DRAWS,
    ScoreFunction,
    differences_draws,
    measures_draws,
    pattern_count_draws,
    score_draws,
)
from toolkit.stats.estimates import CONFIDENCE, POWER, Estimate, Interval
from toolkit.stats.multiple import holm
from toolkit.stats.proportions import (
    PairedCounts,
    accuracy_estimate,
    detectable_difference,
    exact_mcnemar,
    examples_needed,
    paired_counts,
    paired_difference_interval,
    wilson_interval,
)
from toolkit.stats.seeds import (
    SeedComparison,
    compare_paired_seeds,
    compare_seeds,
    nested_draws,
    paired_seeds_needed,
    seed_interval,
    seeds_needed,
)

__all__ = [
    "BOOTSTRAP_DRAWS",
    "CONFIDENCE",
    "POWER",
    "Estimate",
    "Interval",
    "PairedCounts",
    "ScoreFunction",
    "SeedComparison",
    "accuracy_estimate",
    "bootstrap_interval",
    "bootstrap_p_value",
    "compare_paired_seeds",
    "compare_paired_seeds_and_examples",
    "compare_seeds",
    "compare_seeds_and_examples",
    "detectable_difference",
    "difference_interval",
    "differences_draws",
    "exact_mcnemar",
    "examples_needed",
    "examples_needed_bootstrap",
    "holm",
    "macro_f1",
    "macro_f1_draws",
    "macro_f1_scores",
    "macro_f1_statistics",
    "measures_draws",
    "nested_draws",
    "p_value_error",
    "paired_counts",
    "paired_difference_interval",
    "paired_seeds_needed",
    "pattern_count_draws",
    "sacrebleu_p_value",
    "score_draws",
    "seed_interval",
    "seeds_needed",
    "wilson_interval",
]
