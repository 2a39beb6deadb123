"""What ends a recipe early: errors that are the user's to mend, and work done without training."""


class UserError(Exception):
    """Something the person at the keyboard can put right.

    The message says what was found, where (file, row), what was expected and what to do.
    Entry points print it without a traceback and exit with status 2.
    """


class Interrupted(KeyboardInterrupt):
    """The person, or a scheduler, has ended a run, which is saved. ``status``: 128 + the signal."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RecipeEnds(Exception):  # noqa: N818  (it is no error)
    """What was asked is done, without a training: `toolkit.entry.run_recipe` ends with code 0."""


def first_line(error: BaseException) -> str:
    """The first line of what another library says, or the name of its error where it says nothing.

    What follows is for developers (a traceback of C++, a list of every file tried).
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip()
