"""A run to the Hub: token, folder, its check, right to write, upload, and the check of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.console import notify
from toolkit.sharing.access import Access, check_name, check_token, open_repository
from toolkit.sharing.push_options import PushOptions

if TYPE_CHECKING:
    from toolkit.sharing.staging import Staged


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
    check_name(options.repo)
    # Imported now: they bring torch and transformers, which a refused token need not wait for.
    from toolkit.sharing.fresh_process import check_shareable
    from toolkit.sharing.staging import stage

    staged = stage(options.run, options.repo, merged=options.merged, options=options.card)
    return staged, float(check_shareable(staged.shareable, options.run))


def push(options: PushOptions) -> Pushed:
    """Upload a run's model, and make sure that it has arrived whole.

    The folder `RUN/share` is there until then.

    Raises:
        UserError: something the user can put right: the run, the name, the token, its rights.
        HubError: the Hub does not do what it should.
    """
    # Before the work; nothing is made on the Hub until the folder is good.
    check_token(options.repo)
    from toolkit.sharing.remote_check import check_remote
    from toolkit.sharing.staging import remove_staged
    from toolkit.sharing.upload import upload

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
