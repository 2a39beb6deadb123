"""May this user write to that repository of the Hub? Asked before anything long is begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.errors import UserError
from toolkit.sharing.hub_errors import hub_errors, no_token_text, offline_text


@dataclass(frozen=True)
class Access:
    """A repository that can be written to.

    Args:
        repo: its name, "user/name".
        user: whose token it is.
        private: whether only its owners see it.
        made: it was made just now.
        url: its page.
    """

    repo: str
    user: str
    private: bool
    made: bool
    url: str


def check_name(repo: str) -> None:
    """Raise a UserError where `repo` is no name of a repository, "user/name"."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"{repo!r} is no name of a repository: expected user/name, of letters, digits, '-', "
            f"'_' and '.' ({said})."
        ) from None
    if "/" not in repo:
        raise UserError(
            f"{repo!r} is no name of a repository: expected user/name, such as YOUR-ACCOUNT/{repo}."
        )


def check_token(repo: str) -> str:
    """Ask the Hub whose token this is; makes nothing.

    Returns:
        Name of the account.

    Raises:
        UserError: the name is none, offline mode is set, there is no token, the Hub does not know
            it, or it may only read.
        HubError: the Hub cannot be asked.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.utils import get_token

    check_name(repo)
    if constants.HF_HUB_OFFLINE:
        raise UserError(offline_text(f"pushing to {repo}"))
    with hub_errors("asking the Hub whose token this is"):
        if not get_token():
            raise UserError(no_token_text())
        account = HfApi().whoami()
    user = str(account.get("name", "?"))
    if _role(account) == "read":
        raise UserError(
            f"the token of {user} may only read. Make one with the right to write at "
            "https://huggingface.co/settings/tokens, then `hf auth login`, or set HF_TOKEN."
        )
    return user


def open_repository(repo: str, *, private: bool) -> Access:
    """Make sure that the repository is there and can be written to.

    Args:
        private: only its owners may see it. A repository that is there stays as private as it is.

    Raises:
        UserError: as `check_token`; the token may not write there; or the repository is public,
            though a private one is asked for.
        HubError: the Hub cannot be asked, or made a public repository of a private one.
    """
    from huggingface_hub import HfApi

    user, api = check_token(repo), HfApi()
    with hub_errors(f"looking for {repo}", repo):
        before = _seen(api, repo)
    if before is not None and private and not before.private:
        raise UserError(
            f"{repo} is there already and public, but --private was given. Make it private in its "
            "settings on the Hub first, choose another name, or leave --private out."
        )
    with hub_errors(f"making {repo} as {user}", repo):
        if before is None:
            # Where nothing is asked for, the owner's own default decides.
            api.create_repo(repo, private=True if private else None, exist_ok=True)
        now = before or api.model_info(repo)
    if private and not now.private:
        raise UserError(
            f"{repo} was to be private, but the Hub made it public; nothing was uploaded. Delete "
            "it or make it private in its settings on the Hub, then push again."
        )
    with hub_errors(f"asking for the right to write to {repo} as {user}", repo):
        _check_write(api, repo)
    return Access(repo, user, bool(now.private), before is None, f"{api.endpoint}/{repo}")


def _seen(api: Any, repo: str) -> Any:
    """What the Hub says of the repository; None where there is none that the token may see."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return api.model_info(repo)
    except RepositoryNotFoundError as error:
        if error.response.status_code == 401:
            raise
        return None


def _check_write(api: Any, repo: str) -> None:
    """Making a repository proves the right to write; that it was there already does not."""
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        api.auth_check(repo, write=True)
    except RepositoryNotFoundError:
        raise
    except HfHubHTTPError as error:
        if error.response.status_code != 404:  # mirrors and private Hubs may lack this question
            raise


def _role(account: dict[str, Any]) -> str | None:
    """ "read", "write" or "fineGrained"; None where the Hub does not say."""
    token = (account.get("auth") or {}).get("accessToken") or {}
    role = token.get("role")
    return None if role is None else str(role)
