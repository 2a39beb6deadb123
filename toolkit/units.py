"""Numbers with units, as a person reads them."""

from __future__ import annotations


def size(bytes_: float) -> str:
    """1234567890 -> "1.15 GiB", 52428800 -> "50 MiB", 524288 -> "0.5 MiB"."""
    if bytes_ >= 2**30:
        return f"{bytes_ / 2**30:.2f} GiB"
    mebibytes = bytes_ / 2**20
    return f"{mebibytes:.0f} MiB" if mebibytes >= 10 else f"{mebibytes:.1f} MiB"
