"""How numbers and lists are written in reports."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.stats import Estimate, Interval

MISSING = "–"


def percent(share: float, digits: int = 1) -> str:
    """0.8432 -> "84.3%"."""
    return f"{100 * share:.{digits}f}%"


def points(difference: float) -> str:
    """0.0185 -> "1.9 points"; a negative number carries a minus sign."""
    return f"{signed(difference)} {'point' if signed(abs(difference)) == '1.0' else 'points'}"


def signed(difference: float) -> str:
    """A difference of shares in points, with a true minus sign: -0.0123 -> "−1.2"."""
    written = f"{100 * difference:.1f}"
    return "0.0" if float(written) == 0 else written.replace("-", "\N{MINUS SIGN}")


def level(share: float) -> str:
    """A round share: 0.9 -> "90%", 0.985 -> "98.5%"."""
    return f"{100 * share:g}%"


def percent_with_interval(estimate: Estimate) -> str:
    """Estimate of a share -> "84.3% [82.6, 85.9]"."""
    low, high = 100 * estimate.interval.low, 100 * estimate.interval.high
    return f"{percent(estimate.value)} [{low:.1f}, {high:.1f}]"


def interval_in_points(interval: Interval) -> str:
    """Interval of a difference of shares -> "−1.4 to 1.7"."""
    return f"{signed(interval.low)} to {signed(interval.high)}"


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
