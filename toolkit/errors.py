"""Errors that are the user's to mend; shown as a message, never as a traceback."""


class UserError(Exception):
    """Something the person at the keyboard can put right.

    The message says what was found, where (file, row), what was expected and what to do.
    Entry points print it without a traceback and exit with status 2.
    """


def first_line(error: BaseException) -> str:
    """The first line of what another library says, or the name of its error where it says nothing.

    What follows is for developers (a traceback of C++, a list of every file tried).
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip()
