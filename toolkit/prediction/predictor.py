"""What predicts, what a user can say about how, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.prediction.batches import Advance

Answer = dict[str, Any]
"""What is said of one row: `prediction`, and what belongs to the task beside it. Where something
has to be known about the row (no text, cut) it stands under `NOTE`."""

NOTE = "prediction_note"

NO_TEXT = "no text"


_MOST_LISTED = 20


class BadRowsError(UserError):
    """Rows that a predictor cannot answer.

    Args:
        what: said of all of them, after their number.
        problems: of every one its number (0-based) among the rows given, its name where it has
            one (None: its number is said), and what is wrong.
        advice: what to do.
    """

    def __init__(
        self, what: str, problems: Sequence[tuple[int, str | None, str]], advice: str
    ) -> None:
        self.what, self.problems, self.advice = what, problems, advice
        listed = "".join(
            f"\n  {name or f'row {row + 1:,}'}: {problem}"
            for row, name, problem in problems[:_MOST_LISTED]
        )
        super().__init__(f"{len(problems)} {what}:{listed}\n{advice}")

    def further(self, rows: int) -> BadRowsError:
        """The same, of rows that stand so many rows further down."""
        moved = [(row + rows, name, problem) for row, name, problem in self.problems]
        return BadRowsError(self.what, moved, self.advice)


@dataclass(frozen=True)
class Options:
    """How to load a model and predict with it; None: what the run used, or the model's own."""

    implementation: str = "scratch"
    """scratch or hf. Where there is no class of ours, HuggingFace's is used, which is said."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""
    batch_size: int = 64
    """Rows computed at once, at most."""
    batch_tokens: int | None = None
    """Tokens computed at once, at most, padding included; None: what suits the device."""
    max_length: int | None = None
    """Tokens of an input; what is longer is cut, or read in windows."""
    max_new_tokens: int | None = None
    """Tokens that are written at most, by models that write."""
    beams: int | None = None
    """Hypotheses in the search for a translation."""
    prefix: str | None = None
    """Put before every text that is translated."""
    source_language: str | None = None
    """Code of the language to translate from, for models of several."""
    target_language: str | None = None
    """Code of the language to translate into."""
    temperature: float = 0.0
    """Of a language model; 0 takes the most probable token every time."""
    top_p: float = 1.0
    """A language model chooses among the tokens that together have this probability."""
    seed: int = 0
    """Of what a language model draws."""
    no_answer_threshold: float | None = None
    """Margin over giving no answer from which on a question is answered."""
    skip_damaged: bool = False
    """Leave files that are no images without a prediction."""


class Predictor(Protocol):
    """A model that answers rows.

    `kind` says what its rows are: `text` (a text, or a pair of texts), `tokens` (a text, or a list
    of tokens), `image` (bytes of a file, or its path) or `question` (question and context).
    `names` are those that its answers may have, `NOTE` apart; `labels` its classes, if any.
    """

    task: str
    kind: str
    names: tuple[str, ...]

    @property
    def labels(self) -> Sequence[str]:
        """Names of the classes in id order; empty where there are none."""

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """One answer per row, in the order of the rows."""
