"""Repeat a run and compare: is its result a function of what it recorded?"""

from toolkit.rerun.equality import Compared, compare_runs
from toolkit.rerun.recorded import RecordedRun, read_recorded
from toolkit.rerun.repeating import Repetition, repeat

__all__ = ["Compared", "RecordedRun", "Repetition", "compare_runs", "read_recorded", "repeat"]
