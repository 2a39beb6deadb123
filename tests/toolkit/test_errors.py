"""What other libraries say, in one line."""

import pytest

from toolkit.errors import first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("\n  wrong size \nat 0x7f"), "wrong size"),
        (OSError(2, "No such file", "a.json"), "[Errno 2] No such file: 'a.json'"),
        (EOFError(), "EOFError"),
        (RuntimeError(" \n"), "RuntimeError"),
    ],
)
def test_the_first_line_that_says_something_or_the_error_s_name(error: Exception, line: str):
    assert first_line(error) == line
