"""What is pushed where and how, and what is said when it fails; imports nothing heavy."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UserError
from toolkit.sharing.hub_errors import HubError


@dataclass(frozen=True)
class CardOptions:
    """What the user says about a card.

    Args:
        languages: codes (ISO 639); empty: what the data say.
        license: the Hub's name of one; None: the base model's, where it is known.
        examples: show texts of the test data.
    """

    languages: tuple[str, ...] = ()
    license: str | None = None
    examples: bool = True

    def flags(self) -> list[str]:
        """As words of a command line."""
        words = ["--language", *self.languages] if self.languages else []
        words += ["--license", self.license] if self.license else []
        return words + ["--no-examples"] * (not self.examples)


@dataclass(frozen=True)
class PushOptions:
    """What is pushed where, and how.

    Args:
        run: directory of a complete run, or a model folder.
        repo: "user/name".
        private: only the owners may see it.
        merged: an adapter merged with its base (True), alone (False), or as is best (None).
        message: of the commit; None: says which run it is.
        card: what its model card leaves out, and what the run does not know.
    """

    run: Path
    repo: str
    private: bool = False
    merged: bool | None = None
    message: str | None = None
    card: CardOptions = CardOptions()

    @property
    def command(self) -> str:
        """What to type to push it (again)."""
        words = ["toolkit", "push", str(self.run), self.repo]
        words += ["--private"] * self.private
        words += {None: [], True: ["--merged"], False: ["--adapter"]}[self.merged]
        words += ["--message", self.message] if self.message else []
        return shlex.join([*words, *self.card.flags()])


def staging_folder(run: Path) -> Path:
    """Where the folder lies until it is on the Hub: in the run, or beside a model folder."""
    if (run / "summary.json").is_file():
        return run / "share"
    return run.with_name(f"{run.name}.share")


def failure_text(error: UserError | HubError, options: PushOptions) -> str:
    """What failed, where everything lies, and how to try again."""
    return (
        f"not pushed: {error}\nEverything is still in {options.run}. Try again with:\n"
        f"    {options.command}"
    )


def interrupted_text(options: PushOptions) -> str:
    """Likewise of a push that the user stopped; the folder is named where it is written."""
    folder = staging_folder(options.run)
    staged = f"; the folder that is uploaded: {folder}" if folder.is_dir() else ""
    return (
        f"interrupted. Everything is still in {options.run}{staged}. Push it with:\n"
        f"    {options.command}"
    )
