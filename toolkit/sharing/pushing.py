"""A run to the Hub: token, folder, its check, right to write, upload, and the check of that."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.sharing.access import Access, check_name, check_token, open_repository
from toolkit.sharing.card import CardOptions
from toolkit.sharing.hub_errors import HubError
from toolkit.sharing.remote_check import check_remote
from toolkit.sharing.staging import Staged, remove_staged, stage, staging_folder
from toolkit.sharing.upload import upload


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
    card: CardOptions = CardOptions()  # noqa: RUF009  (it is frozen)

    @property
    def command(self) -> str:
        """What to type to push it (again)."""
        words = ["toolkit", "push", str(self.run), self.repo]
        words += ["--private"] * self.private
        words += {None: [], True: ["--merged"], False: ["--adapter"]}[self.merged]
        words += ["--message", self.message] if self.message else []
        return shlex.join([*words, *self.card.flags()])


@dataclass(frozen=True)
class Pushed:
    """What lies on the Hub now.

    Args:
        difference: the largest between the outputs of the run's model and those of the folder, as a
            fresh process without this package computed them.
        other_files: of the repository that were left as they were.
    """

    access: Access
    commit: str
    staged: Staged
    difference: float
    other_files: list[str]


def prepare(options: PushOptions) -> tuple[Staged, float]:
    """Write the folder that is to be uploaded, and try it in a fresh process, offline.

    Raises:
        UserError: there is no run, or its model does not give there what it gives here.
    """
    from toolkit.sharing.fresh_process import check_shareable

    check_name(options.repo)
    staged = stage(options.run, options.repo, merged=options.merged, options=options.card)
    return staged, float(check_shareable(staged.shareable, options.run))


def push(options: PushOptions) -> Pushed:
    """Upload a run's model, and make sure that it has arrived whole.

    The folder `RUN/share` is there until then.

    Raises:
        UserError: something the user can put right: the run, the name, the token, its rights.
        HubError: the Hub does not do what it should.
    """
    check_token(
        options.repo
    )  # before the work; nothing is made on the Hub until the folder is good
    staged, difference = prepare(options)
    access = open_repository(options.repo, private=options.private)
    seen = "private" if access.private else "public"
    notify(f"{access.url}: {'made' if access.made else 'is there'}, {seen}, writable")
    message = options.message or f"Upload {staged.title}"
    commit = upload(staged.folder, options.repo, message)
    others = check_remote(options.repo, commit, staged.folder)
    remove_staged(staged)
    kept = [name for name in others if name != ".gitattributes"]
    return Pushed(access, commit, staged, difference, kept)


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
