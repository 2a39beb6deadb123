"""What went wrong with the Hub, in words that say what to do, and without any token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.errors import UserError, first_line

SLOWEST = 120.0
"""Seconds that the Hub may be silent: huggingface_hub's own client would wait for ever."""
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{16,}")
# What huggingface_hub and its transfer library raise besides their own kinds: a failed upload is a
# RuntimeError, an answer that is no JSON a ValueError.
_OF_THE_HUB = (OSError, ValueError, RuntimeError)
_CLIENTS = ("huggingface_hub", "hf_xet", "httpx", "httpx2", "httpcore", "httpcore2")
_TOKENS = "https://huggingface.co/settings/tokens"


class HubError(Exception):
    """The Hub cannot be reached or does not do what it should: the same command may work later.

    The message says what happened; no token is in it.
    """


def redacted(text: str) -> str:
    """The text without the user's token, or anything that looks like one."""
    from huggingface_hub.utils import get_token

    try:
        own = get_token()
    except Exception:  # whatever is wrong with it, it is not in the text
        own = None
    if own:
        text = text.replace(own, "hf_…")
    return _TOKEN.sub("hf_…", text)


@contextmanager
def hub_errors(doing: str, repo: str | None = None) -> Iterator[None]:
    """Turn what huggingface_hub raises in the block into our errors.

    Args:
        doing: what is tried, such as "uploading to user/name".
        repo: name of the repository, where one is concerned.

    Raises:
        UserError: the token is refused or may not do this, or what was sent is refused.
        HubError: anything else.
    """
    from huggingface_hub.errors import LocalTokenNotFoundError, OfflineModeIsEnabled

    try:
        with _patient_client():
            yield
    except (UserError, HubError):
        raise
    except OfflineModeIsEnabled:
        raise UserError(offline_text(doing)) from None
    except LocalTokenNotFoundError:
        raise UserError(no_token_text()) from None
    except UnicodeEncodeError:  # of the header with the token
        raise UserError(
            "the Hub's token holds characters that no token has. Copy it again from "
            f"{_TOKENS} (hf auth login, or the variable HF_TOKEN)."
        ) from None
    except Exception as error:
        if not (isinstance(error, _OF_THE_HUB) or _is_of_the_client(error)):
            raise  # a bug
        # `from None`: a traceback of the client could show the headers it sent.
        raise _explained(error, doing, repo) from None


def offline_text(doing: str) -> str:
    """For the user who has forbidden what is asked for."""
    return (
        f"{doing}: offline mode is set (HF_HUB_OFFLINE). Unset it to push: "
        "env -u HF_HUB_OFFLINE COMMAND"
    )


def no_token_text() -> str:
    """For the user who is not logged in."""
    return (
        "no token of the Hub was found. Make one with the right to write at "
        f"{_TOKENS}, then run `hf auth login`, or set HF_TOKEN."
    )


def _is_of_the_client(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _CLIENTS


def _explained(error: BaseException, doing: str, repo: str | None) -> UserError | HubError:
    from huggingface_hub import constants
    from huggingface_hub.errors import HTTPError

    cause = _deepest(error)
    status = getattr(getattr(cause, "response", None), "status_code", None)
    said = redacted(_server_words(cause))
    if status == 401:
        return UserError(
            f"{doing}: the Hub does not know the token (401: {said}). Make a new one at {_TOKENS}, "
            "then `hf auth login --force`, or set HF_TOKEN, which counts before the login."
        )
    if status == 403:
        owner = f" to {repo.split('/')[0]}" if repo else ""
        return UserError(
            f"{doing}: the token may not do this (403: {said}). It needs the right to write"
            f"{owner}: {_TOKENS}; and the name must begin with your own account or an "
            "organisation of yours."
        )
    if status == 404 and repo is None:
        return HubError(
            f"{doing}: {constants.ENDPOINT} has no such page (404: {said}). Is HF_ENDPOINT a Hub?"
        )
    if status == 404:
        return UserError(
            f"{doing}: {repo or 'it'} is not there, or the token may not see it (404: {said})."
        )
    if status in (400, 409, 413, 422):
        return UserError(f"{doing}: the Hub refuses what it was sent ({status}: {said}).")
    if status is not None:
        return HubError(
            f"{doing}: {constants.ENDPOINT} answers {status} ({said}). Try again later."
        )
    name = type(cause).__name__
    if "Timeout" in name:
        return HubError(
            f"{doing}: {constants.ENDPOINT} said nothing for {SLOWEST:g} s. Try again later."
        )
    if isinstance(cause, (HTTPError, ConnectionError)):
        return HubError(
            f"{doing}: the connection to {constants.ENDPOINT} failed ({name}: {said}). Is the "
            "network up, and HF_ENDPOINT right where it is set?"
        )
    return HubError(f"{doing}: {name}: {said}")


def _deepest(error: BaseException) -> BaseException:
    """The error that says most: the client wraps those of single files in a RuntimeError."""
    while isinstance(error, RuntimeError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _server_words(error: BaseException) -> str:
    """What the server says, where it does, else the client's words on one line."""
    message = getattr(error, "server_message", None)
    words = str(message) if message else first_line(error)
    return " ".join(words.split()).rstrip(".") or type(error).__name__


@contextmanager
def _patient_client() -> Iterator[None]:
    """Let huggingface_hub's client wait for `SLOWEST` seconds at most."""
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    def factory() -> object:
        client = default_client_factory()
        client.timeout = SLOWEST
        return client

    set_client_factory(factory)
    try:
        yield
    finally:
        set_client_factory(default_client_factory)
