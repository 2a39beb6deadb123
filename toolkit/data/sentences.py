"""Texts to sentences, Chinese and Western."""

from __future__ import annotations

import re

# A sentence ends with its closing marks and the quotes or brackets that close after them. A Western
# full stop ends one only before white space (3.5, example.com), a line end always.
_SENTENCE = re.compile(
    r"""
    .+?                                     # the sentence
    (?:
        [。！？!?；;…]+ [”’」』）)】》"']*   # Chinese ends and what closes with them
      | [.]+ ["')\]]* (?=\s)
      | (?=\n)
      | $
    )
    """,
    re.VERBOSE,
)


def split_sentences(text: str) -> list[str]:
    """Sentences in order, trimmed, each with its closing marks; nothing but white space is lost."""
    return [sentence for match in _SENTENCE.findall(text) if (sentence := match.strip())]


_CLAUSE = re.compile(r".+?(?:[，,、：:]+(?!\d)|\n|$)")


def split_clauses(text: str) -> list[str]:
    """Parts in order, trimmed, each with the comma it ends with; a comma within a number stays."""
    return [clause for match in _CLAUSE.findall(text) if (clause := match.strip())]
