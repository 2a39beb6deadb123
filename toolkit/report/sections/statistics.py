"""Every pair, its tests, and how they were made."""

from __future__ import annotations

from toolkit.comparison.compare import Comparison
from toolkit.comparison.pairs import Pair
from toolkit.plots import Bar, difference_plot
from toolkit.report import wording
from toolkit.report.blocks import Block, Bullets, Cell, Details, Figure, Paragraph, Section, Table
from toolkit.report.content import Report
from toolkit.task_scores.measures import Unit

# With more pairs than this, a report shows those with the best method; all are in report.json.
_MOST_PAIRS = 15


def section(report: Report) -> Section:
    """The table of pairs and notes on the tests."""
    comparison = report.comparison
    pairs = shown_pairs(comparison)
    # The picture, which cannot be cut, last: a long table fills a printed page before it.
    blocks: list[Block] = [_table(comparison, pairs)]
    if len(pairs) < len(comparison.pairs):
        blocks.append(
            Paragraph(
                f"Shown are the pairs with the best method; all {len(comparison.pairs)} pairs are "
                "in report.json.",
                tone="caption",
            )
        )
    if any(pair.deciding.over_seeds for pair in comparison.pairs):
        blocks.append(_other_intervals(comparison, pairs))
    blocks += [_picture(comparison, pairs), Bullets(notes(comparison))]
    return Section("Statistics", blocks)


def shown_pairs(comparison: Comparison) -> list[Pair]:
    """All, or those with the best method where there are many."""
    if len(comparison.pairs) <= _MOST_PAIRS:
        return comparison.pairs
    return [pair for pair in comparison.pairs if pair.first == 0]


def _table(comparison: Comparison, pairs: list[Pair]) -> Table:
    """The intervals and p values that decide, and the other measures."""
    primary, others = comparison.primary, comparison.view.measures[1:]
    quoted = any(pair.deciding.p_sacrebleu is not None for pair in comparison.pairs)
    header = ["A − B", f"A better in {primary.label}{_unit(comparison)}", "p", "p (Holm)"]
    header += ["p (sacrebleu)"] * quoted + [measure.label for measure in others]
    rows = []
    for pair in pairs:
        found = pair.deciding
        cells = [
            Cell(_title(comparison, pair)),
            Cell(
                wording.signed_difference(primary, found.advantage),
                strong=pair.significant,
                detail=wording.advantage_brackets(primary, found.deciding_interval),
            ),
            Cell(wording.p_value(found.p_value)),
            Cell(wording.p_value(pair.p_holm)),
        ]
        if quoted:
            cells.append(_p(found.p_sacrebleu))
        for measure in others:
            other = pair.differences[measure.key]
            interval = wording.advantage_brackets(measure, other.deciding_interval)
            written = wording.signed_difference(measure, other.advantage)
            cells.append(Cell(written, detail=interval))
        rows.append(cells)
    return Table(header, rows, numeric=range(1, len(header)))


def _other_intervals(comparison: Comparison, pairs: list[Pair]) -> Details:
    """Of methods with several seeds: what seeds alone, examples alone, and the bootstrap say."""
    primary = comparison.primary
    header = ["A − B", "over examples alone", "p", "over seeds alone", "p", "nested bootstrap"]
    rows = []
    for pair in pairs:
        found, over = pair.deciding, pair.deciding.over_seeds
        alone = None if over is None else over.seeds
        intervals = (
            found.interval,
            None if alone is None else alone.interval,
            None if over is None else over.nested,
        )
        examples, seeds, nested = (
            Cell(wording.MISSING if one is None else wording.advantage_brackets(primary, one))
            for one in intervals
        )
        rows.append(
            [
                Cell(_title(comparison, pair)),
                examples,
                _p(found.p_examples),
                seeds,
                _p(None if alone is None else alone.p_value),
                nested,
            ]
        )
    missing = (
        f"{wording.MISSING}: fewer than three seeds on a side, or none of them changes anything; "
        "then the examples alone decide."
    )
    return Details(
        "Seeds alone, examples alone",
        [
            Table(header, rows, numeric=range(1, len(header))),
            Paragraph(missing, tone="caption"),
        ],
    )


def _title(comparison: Comparison, pair: Pair) -> str:
    return f"{comparison.rows[pair.first].title} − {comparison.rows[pair.second].title}"


def _p(value: float | None) -> Cell:
    return Cell(wording.MISSING if value is None else wording.p_value(value))


def _picture(comparison: Comparison, pairs: list[Pair]) -> Figure:
    """What the better method of each pair is better by."""
    primary = comparison.primary
    bars = []
    for pair in pairs:
        found = pair.deciding
        examples = primary.advantages(found.interval)
        low, high = examples.low, examples.high
        title = _title(comparison, pair)
        if found.over_seeds is None:
            bars.append(Bar(title, found.advantage, low, high))
            continue
        both = primary.advantages(found.over_seeds.both.interval)
        bars.append(Bar(title, found.advantage, low, high, seed_low=both.low, seed_high=both.high))
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


def _unit(comparison: Comparison) -> str:
    return "" if comparison.primary.unit is Unit.NUMBER else ", points"


def notes(comparison: Comparison) -> list[str]:
    """How the numbers came about."""
    view = comparison.view
    drawn = "test examples" if view.clusters is None else f"whole {view.cluster_noun}"
    bootstrap = (
        f"{comparison.bootstrap_draws:,} bootstrap samples of {drawn}, the same samples for all "
        f"methods and measures (seed {comparison.bootstrap_seed})"
    )
    lines = []
    counted = [m.label for m in view.measures if m.counts_right and view.clusters is None]
    others = [m.label for m in view.measures if m.label not in counted]
    if counted:
        lines.append(
            f"{wording.capitalised(wording.listed(counted))} of one run (or of seeds that all say "
            "the same): Wilson's 95% interval; differences: Bonett and Price's for paired "
            "proportions, and the exact McNemar test on the same examples, two-sided."
        )
    if comparison.several_seeds and counted:
        others.append("means over seeds")
    if others:
        lines.append(
            f"{wording.capitalised(wording.listed(others))}: bootstrap 95% intervals of "
            f"{bootstrap}. p over examples: the share of draws, centred on no difference, that are "
            "as far from it as what was found."
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
    over_seeds = [(pair, pair.deciding.over_seeds) for pair in comparison.pairs]
    paired = [_title(comparison, pair) for pair, over in over_seeds if over and over.paired]
    if paired:
        lines.append(
            f"{wording.listed(paired)}: two implementations of one model, which start from the "
            "same weights and see the same batches with the same seed. They are compared seed by "
            "seed (paired t interval)."
        )
    draws = {pair.deciding.draws for pair in comparison.pairs}
    many = sorted(number for number in draws if number and number > comparison.bootstrap_draws)
    if many:
        lines.append(
            f"Where {comparison.bootstrap_draws:,} samples left open on which side of 5% a p value "
            f"lies, it and its interval are from {many[-1]:,}. Monte-Carlo standard errors of p "
            "are in report.json."
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
