"""How numbers and lists are written in reports."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from toolkit import units
from toolkit.stats import Interval
from toolkit.task_scores.measures import Measure, Unit

MISSING = "–"
_NOTHING = 5e-5  # of a perplexity or of bits per byte


def percent(share: float, digits: int = 1) -> str:
    """0.8432 -> "84.3%", 0.8455 -> "84.6%"."""
    return f"{rounded(100 * share, digits)}%"


def rounded(number: float, digits: int = 1) -> str:
    """Half up, as by hand: 84.55 -> "84.6" (its nearest binary number lies below)."""
    exact = Decimal(repr(round(float(number), 9)))
    return str(exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def points(difference: float) -> str:
    """0.0185 -> "1.9 points"; a negative number carries a minus sign."""
    return f"{signed(difference)} {'point' if signed(abs(difference)) == '1.0' else 'points'}"


def signed(difference: float) -> str:
    """A difference of shares in points, with a true minus sign: -0.0123 -> "−1.2"."""
    written = rounded(100 * difference)
    return "0.0" if float(written) == 0 else written.replace("-", "\N{MINUS SIGN}")


def level(share: float) -> str:
    """A round share: 0.9 -> "90%", 0.985 -> "98.5%"."""
    return f"{100 * share:g}%"


def p_value(p: float) -> str:
    """0.0576 -> "0.058", 0.8213 -> "0.82", 1e-9 -> "<0.001"."""
    if p < 0.001:
        return "<0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_equals(p: float) -> str:
    """Like `p_value`, as part of a sentence: "p = 0.82", "p < 0.001"."""
    written = p_value(p)
    return f"p < {written[1:]}" if written.startswith("<") else f"p = {written}"


def count(value: int | None) -> str:
    """1234567 -> "1,234,567"."""
    return MISSING if value is None else f"{value:,}"


def whole(number: float) -> str:
    """1234.0 -> "1,234"."""
    return f"{number:,.0f}"


def one_decimal(number: float) -> str:
    """1234.56 -> "1,234.6"."""
    return f"{number:,.1f}"


def about(value: int) -> str:
    """A computed sample size to two digits: 148,213 -> "150,000"."""
    digits = len(str(value))
    return f"{round(value, min(0, 2 - digits)):,}"


def parameters(value: int | None) -> str:
    """117653760 -> "117.7 M", 769 -> "769"."""
    if value is None:
        return MISSING
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return str(value)


def seconds(value: float | None) -> str:
    """214.3 -> "214 s", 1.234 -> "1.2 s", 7384 -> "2 h 3 min"."""
    if value is None:
        return MISSING
    if 600 <= value < 3600:
        minutes, left = divmod(round(value), 60)
        return f"{minutes} min {left} s"
    if value >= 3600:
        hours, minutes = divmod(round(value / 60), 60)
        return f"{hours} h {minutes} min"
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"


def rate(value: float | None) -> str:
    """Tokens or images per second: 5231.7 -> "5,232"."""
    return MISSING if value is None else f"{value:,.0f}"


def listed(items: Sequence[str], last: str = "and") -> str:
    """["A", "B", "C"] -> "A, B and C"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def shortened(text: str, limit: int) -> str:
    """One line of at most `limit` characters; what was cut is marked by an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def value(measure: Measure, number: float) -> str:
    """A value of a measure: "84.3%", BLEU "31.3", a perplexity "23.41"."""
    if not math.isfinite(number):
        return MISSING if math.isnan(number) else "infinite"
    if measure.unit is Unit.SHARE:
        return percent(number)
    return rounded(number) if measure.unit is Unit.SCORE else plain(number)


def plain(number: float) -> str:
    """Four significant digits at least: 484.21 -> "484.2", 0.02345 -> "0.02345".

    What is nothing but rounding is "0.000", without a sign.
    """
    number = 0.0 if abs(number) < _NOTHING else number
    written = f"{number:,.0f}" if abs(number) >= 1000 else f"{number:#.4g}".rstrip(".")
    return written.replace("-", "\N{MINUS SIGN}")


def brackets(measure: Measure, interval: Interval) -> str:
    """Interval of values -> "[82.6, 85.9]"; the unit stands beside the value."""
    return f"[{bare(measure, interval.low)}, {bare(measure, interval.high)}]"


def bare(measure: Measure, number: float) -> str:
    """A value without its unit: 0.826 -> "82.6"."""
    return rounded(100 * number) if measure.unit is Unit.SHARE else value(measure, number)


def signed_difference(measure: Measure, difference: float) -> str:
    """A difference of two values without its unit: −0.0123 of accuracy -> "−1.2"."""
    if measure.unit is Unit.NUMBER:
        return plain(difference)
    return signed(difference if measure.unit is Unit.SHARE else difference / 100)


def difference(measure: Measure, number: float) -> str:
    """A difference of two values: "1.9 points" of a share or score, "2.213" of others."""
    if measure.unit is Unit.NUMBER:
        return plain(number)
    return points(number if measure.unit is Unit.SHARE else number / 100)


def difference_interval(measure: Measure, interval: Interval) -> str:
    """Interval of a difference -> "−1.4 to 1.7"."""
    low, high = interval.low, interval.high
    return f"{signed_difference(measure, low)} to {signed_difference(measure, high)}"


def advantage_brackets(measure: Measure, interval: Interval) -> str:
    """Likewise, as "[−1.4, 1.7]"."""
    return f"[{advantage_interval(measure, interval).replace(' to ', ', ')}]"


def advantage_interval(measure: Measure, interval: Interval) -> str:
    """Likewise, of what the first is better by: turned round where lower values are better."""
    return difference_interval(measure, measure.advantages(interval))


def tiny(number: float) -> str:
    """Differences of rounding: 6.6e-07 -> "6.6e-07", 0.0281 -> "0.028", 0 -> "0"."""
    if number == 0:
        return "0"
    return f"{number:.1e}" if abs(number) < 0.001 else f"{number:.2g}"


def metric(key: str) -> str:
    """A metric's key in words: "entity_f1" -> "entity F1"; also within a sentence."""
    return re.sub(r"\bf1\b", "F1", key.replace("_", " "))


def capitalised(text: str) -> str:
    """With a capital at the start; the rest as it is ("macro F1" -> "Macro F1")."""
    return text[:1].upper() + text[1:]


def size(bytes_: float | None) -> str:
    """`toolkit.units.size`, where it is known."""
    return MISSING if bytes_ is None else units.size(bytes_)


def energy(joules: float | None) -> str:
    """7384.2 -> "7.4 kJ", 312.4 -> "312 J"."""
    return MISSING if joules is None else _with_prefix(joules, "J")


def operations(flops: float | None) -> str:
    """Floating point operations: 1.234e15 -> "1.2 PFLOP"."""
    return MISSING if flops is None else _with_prefix(flops, "FLOP")


def _with_prefix(number: float, unit: str) -> str:
    for factor, prefix in (
        (1e18, "E"),
        (1e15, "P"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
    ):
        if number >= factor:
            return f"{number / factor:.1f} {prefix}{unit}"
    return f"{number:.0f} {unit}"
