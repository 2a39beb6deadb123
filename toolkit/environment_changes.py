"""What is another machine, another version or other code than when a run began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolkit.json_values import leaves

_NAMES = {
    "code": "code of the project (fingerprint)",
    "git.commit": "git commit",
    "git.dirty": "uncommitted changes",
    "accelerate.num_processes": "processes",
    "accelerate.mixed_precision": "mixed precision",
    "accelerate.distributed_type": "distributed training",
    "accelerate.device": "device",
}
CONTINUED = "continued_with"
"""Where environment.json lists what was otherwise when the run was resumed, time by time."""
# Nothing of these enters a computation.
_NO_CAUSE = ("recipe", "command", "uid", CONTINUED)


@dataclass(frozen=True)
class Change:
    """One entry of environment.json, by its dotted name, and its value then and now."""

    name: str
    then: Any
    now: Any

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        if self.name.startswith("packages."):
            return self.name.removeprefix("packages.")
        return _NAMES.get(self.name, self.name.replace("variables.", "variable "))

    @property
    def values(self) -> tuple[str, str]:
        """Then and now as one shows them; hashes cut short."""
        return _shown(self.then), _shown(self.now)

    @property
    def in_words(self) -> str:
        """``torch: 2.9.0 then, 2.10.0 now``."""
        then, now = self.values
        return f"{self.title}: {then} then, {now} now"


def environment_changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Entries that differ, in the order of `then`.

    Sections that only one of the two has are passed over: an older version did not record them.
    """
    both = [name for name in then if name in now and name not in _NO_CAUSE]
    flat = [dict(leaves({name: record[name] for name in both})) for record in (then, now)]
    names = list(flat[0] | flat[1])
    pairs = [(name, flat[0].get(name), flat[1].get(name)) for name in names]
    return [Change(*pair) for pair in pairs if pair[1] != pair[2]]


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    text = str(value)
    return text[:12] if len(text) in (40, 64) and " " not in text else text
