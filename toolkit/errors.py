"""Errors that are the user's to mend; shown as a message, never as a traceback."""


class UserError(Exception):
    """Something the person at the keyboard can put right.

    The message says what was found, where (file, row), what was expected and what to do.
    Entry points print it without a traceback and exit with status 2.
    """
