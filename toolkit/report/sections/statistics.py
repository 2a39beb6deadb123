"""Every pair, its tests, and how they were made."""

from __future__ import annotations

from toolkit.comparison.compare import Comparison
from toolkit.comparison.pairs import Pair
from toolkit.plots import Bar, difference_plot
from toolkit.report import wording
from toolkit.report.blocks import Block, Bullets, Cell, Figure, Paragraph, Section, Table
from toolkit.report.content import Report
from toolkit.stats import Interval
from toolkit.task_scores.measures import Measure, Unit

# With more pairs than this, a report shows those with the best method; all are in report.json.
_MOST_PAIRS = 15


def section(report: Report) -> Section:
    """The table of pairs and notes on the tests."""
    comparison = report.comparison
    pairs = shown_pairs(comparison)
    blocks: list[Block] = [_picture(comparison, pairs), _table(comparison, pairs)]
    if len(pairs) < len(comparison.pairs):
        blocks.append(
            Paragraph(
                f"Shown are the pairs with the best method; all {len(comparison.pairs)} pairs are "
                "in report.json.",
                tone="caption",
            )
        )
    blocks.append(Bullets(notes(comparison)))
    return Section("Statistics", blocks)


def shown_pairs(comparison: Comparison) -> list[Pair]:
    """All, or those with the best method where there are many."""
    if len(comparison.pairs) <= _MOST_PAIRS:
        return comparison.pairs
    return [pair for pair in comparison.pairs if pair.first == 0]


def _table(comparison: Comparison, pairs: list[Pair]) -> Table:
    primary = comparison.primary
    seeds = any(pair.deciding.over_seeds for pair in comparison.pairs)
    header = ["A − B", f"A better in {primary.label}{_unit(comparison)}"]
    header += ["over seeds and examples", "over seeds", "nested bootstrap"] if seeds else []
    header += (
        ["p (examples)"] + (["p (seeds)", "p (seeds and examples)"] if seeds else []) + ["p (Holm)"]
    )
    quoted = any(pair.deciding.p_sacrebleu is not None for pair in comparison.pairs)
    header += ["p (sacrebleu)"] if quoted else []
    header += [measure.label for measure in comparison.view.measures[1:]]
    rows = []
    for pair in pairs:
        found = pair.deciding
        title = f"{comparison.rows[pair.first].title} − {comparison.rows[pair.second].title}"
        difference = wording.signed_difference(primary, found.advantage)
        over = found.over_seeds
        interval = wording.advantage_brackets(primary, found.interval)
        cells = [Cell(title), Cell(difference, strong=pair.significant, detail=interval)]
        if seeds:
            alone = None if over is None else over.seeds
            intervals = (
                over and over.both.interval, alone and alone.interval, over and over.nested
            )  # fmt: skip
            cells += [
                Cell(wording.advantage_brackets(primary, one) if one else wording.MISSING)
                for one in intervals
            ]
        cells.append(Cell(wording.p_value(found.p_examples)))
        if seeds:
            for test in (alone, over and over.both):
                cells.append(Cell(wording.p_value(test.p_value) if test else wording.MISSING))
        cells.append(Cell(wording.p_value(pair.p_holm)))
        if quoted:
            p = found.p_sacrebleu
            cells.append(Cell(wording.MISSING if p is None else wording.p_value(p)))
        for measure in comparison.view.measures[1:]:
            other = pair.differences[measure.key]
            cells.append(
                Cell(wording.signed_difference(measure, other.advantage),
                     detail=wording.advantage_brackets(measure, other.interval))
            )  # fmt: skip
        rows.append(cells)
    return Table(header, rows, numeric=range(1, len(header)))


def _picture(comparison: Comparison, pairs: list[Pair]) -> Figure:
    """What the better method of each pair is better by."""
    primary = comparison.primary
    bars = []
    for pair in pairs:
        found = pair.deciding
        low, high = _turned(primary, found.interval)
        title = f"{comparison.rows[pair.first].title} − {comparison.rows[pair.second].title}"
        if found.over_seeds is None:
            bars.append(Bar(title, found.advantage, low, high))
            continue
        seeds = _turned(primary, found.over_seeds.both.interval)
        bars.append(Bar(title, found.advantage, low, high, seed_low=seeds[0], seed_high=seeds[1]))
    caption = (
        f"What A is better by in {primary.label}, pair by pair (A − B), with 95% intervals over "
        f"{comparison.view.cluster_noun or 'test examples'}"
    )
    if any(bar.seed_low is not None for bar in bars):
        caption += "; the thin ones, which decide, are over seeds and examples"
    caption += ". An interval across the line leaves open who is better."
    return Figure(
        "differences",
        lambda: difference_plot(
            bars,
            f"A better in {primary.label}{_unit(comparison)}",
            lambda value: wording.signed_difference(primary, value),
            seed_interval_name="95% interval over seeds and examples",
            left="B better",
            right="A better",
        ),
        alt=f"Differences of {primary.label} between methods with their 95% intervals",
        caption=caption,
    )


def _turned(measure: Measure, interval: Interval) -> tuple[float, float]:
    """Bounds of what the first is better by."""
    if measure.higher_is_better:
        return interval.low, interval.high
    return -interval.high, -interval.low


def _unit(comparison: Comparison) -> str:
    return "" if comparison.primary.unit is Unit.NUMBER else ", points"


def notes(comparison: Comparison) -> list[str]:
    """How the numbers came about."""
    view, primary = comparison.view, comparison.primary
    drawn = "test examples" if view.clusters is None else f"whole {view.cluster_noun}"
    bootstrap = (
        f"{comparison.bootstrap_draws:,} bootstrap samples of {drawn}, the same samples for all "
        f"methods and measures (seed {comparison.bootstrap_seed})"
    )
    lines = []
    counted = primary.counts_right and view.clusters is None
    if counted:
        lines.append(
            f"{wording.capitalised(primary.label)} of one run: Wilson's 95% interval; differences: "
            "Bonett and Price's for paired proportions, and the exact McNemar test on the same "
            "examples, two-sided."
        )
    others = [m.label for m in view.measures if not m.counts_right]
    what = wording.listed(others) if counted else "All measures"
    if comparison.several_seeds and counted:
        what += ", and means over seeds"
    lines.append(
        f"{wording.capitalised(what)}: bootstrap 95% intervals of {bootstrap}; a standard error is "
        "the standard deviation of the draws. p over examples: the share of draws, centred on no "
        "difference, that are as far from it as what was found."
    )
    if any(pair.deciding.over_seeds for pair in comparison.pairs):
        lines.append(
            "Over seeds and examples, which decides: the t interval of the difference of means "
            "over seeds, with the variance between seeds and that between samples of the examples "
            "(less what both hold) and degrees of freedom after Satterthwaite. It says what other "
            "seeds on other test examples would give."
        )
        lines.append(
            "Over seeds alone (Welch's t interval) the examples are taken as given, over examples "
            "alone (bootstrap) the seeds: in simulations of equal methods each alone finds "
            "differences far too often. The nested bootstrap over seeds and examples is too narrow "
            "with few seeds. These three only describe."
        )
    if any(pair.deciding.p_sacrebleu is not None for pair in comparison.pairs):
        lines.append(
            "p (sacrebleu): what sacrebleu --paired-bs prints, to be set beside other people's "
            "numbers. It does not decide: in simulations it is below 0.05 for 9 to 13% of equal "
            "pairs."
        )
    pairs = len(comparison.pairs)
    family = f"over all {pairs} pairs" if pairs > 1 else "(a single pair: nothing to adjust)"
    lines.append(
        f"p (Holm): the deciding p value adjusted {family}. Intervals are those of each pair by "
        "itself; only the p values are adjusted. Bold: significant at 5%. All differences are what "
        "A is better by; a negative one says that B is better."
    )
    return lines
