"""Tags as spans and back, against seqeval, which reads them by other code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOBES, Entities

from toolkit.data.tag_schemes import PREFIXES, Span, bio_tags, detect_scheme, read_spans, split_tag

BIO_TAGS = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])


def written(spans: list[Span], length: int, scheme: str) -> list[str]:
    """Spans in a scheme, by its definition."""
    first, middle, last, single = {
        "bio": "BIIB", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU", "iob1": "IIII",
    }[scheme]  # fmt: skip
    tags = ["O"] * length
    stop_before, kind_before = -1, ""
    for start, stop, kind in spans:
        inner = [middle] * max(stop - start - 2, 0)
        letters = [single] if stop - start == 1 else [first, *inner, last]
        if scheme == "iob1" and start == stop_before and kind == kind_before:
            letters[0] = "B"
        tags[start:stop] = [f"{letter}-{kind}" for letter in letters]
        stop_before, kind_before = stop, kind
    return tags


@st.composite
def spans_of_sentence(draw: st.DrawFn) -> tuple[list[Span], int]:
    spans, place = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = place + draw(st.integers(0, 2))
        place = start + draw(st.integers(1, 4))
        spans.append(Span(start, place, draw(st.sampled_from(["PER", "LOC.NAM"]))))
    return spans, place + draw(st.integers(0, 2))


@given(spans_of_sentence(), st.sampled_from(list(PREFIXES)))
def test_spans_are_read_from_what_is_written_in_every_scheme(
    sentence: tuple[list[Span], int], scheme: str
) -> None:
    spans, length = sentence
    tags = written(spans, length, scheme)
    assert read_spans(tags, scheme) == (spans, [])
    assert bio_tags(spans, length) == written(spans, length, "bio")


@pytest.mark.parametrize(("scheme", "theirs"), [("bioes", IOBES), ("bilou", BILOU), ("iob1", IOB1)])
@given(sentence=spans_of_sentence())
def test_seqeval_reads_the_same_spans_of_valid_tags(
    scheme: str, theirs: type, sentence: tuple[list[Span], int]
) -> None:
    spans, length = sentence
    tags = written(spans, length, scheme)
    found = Entities([tags], scheme=theirs).entities[0] if tags else []
    assert [Span(e.start, e.end, e.tag) for e in found] == read_spans(tags, scheme)[0]


@given(st.lists(BIO_TAGS, max_size=12))
def test_broken_bio_is_read_as_conll_reads_it(tags: list[str]) -> None:
    expected = [Span(start, last + 1, kind) for kind, start, last in get_entities(tags)]
    assert read_spans(tags)[0] == expected


@pytest.mark.parametrize(
    ("scheme", "tags", "spans", "problems"),
    [
        ("bio", ["O", "I-PER"], [Span(1, 2, "PER")], ["1: I-PER continues nothing"]),
        ("bio", ["B-PER", "I-LOC"], [Span(0, 1, "PER"), Span(1, 2, "LOC")],
         ["1: I-LOC continues nothing"]),
        ("iob1", ["I-PER", "I-LOC"], [Span(0, 1, "PER"), Span(1, 2, "LOC")], []),
        ("bmes", ["B-PER", "O"], [Span(0, 1, "PER")], ["0: B-PER ends an entity"]),
        ("bioes", ["O", "E-PER", "S-PER"], [Span(1, 2, "PER"), Span(2, 3, "PER")],
         ["1: E-PER continues nothing"]),
    ],
)  # fmt: skip
def test_what_breaks_the_rules_is_named(
    scheme: str, tags: list[str], spans: list[Span], problems: list[str]
) -> None:
    found, broken = read_spans(tags, scheme)
    assert found == spans
    assert [f"{token}: {what}" for token, what in broken] == problems


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        ([["O", "B-PER", "I-PER"]], "bio"),
        ([["O", "I-PER", "B-PER"]], "iob1"),
        ([["I-PER", "O"], ["B-PER"]], "bio"),  # one that is broken: bio has to begin with B
        ([["S-PER", "B-PER", "E-PER"]], "bioes"),
        ([["B-PER", "M-PER", "E-PER"]], "bmes"),
        ([["U-PER"], ["B-PER", "L-PER"]], "bilou"),
    ],
)
def test_schemes_are_told_apart(sentences: list[list[str]], scheme: str) -> None:
    assert detect_scheme(sentences) == scheme


@pytest.mark.parametrize("sentences", [[["O", "O"]], [["M-PER", "I-PER"]]])
def test_what_no_scheme_has_is_refused(sentences: list[list[str]]) -> None:
    with pytest.raises(ValueError, match=r"every tag is O|no scheme has the prefixes I, M"):
        detect_scheme(sentences)


def test_types_may_hold_separators_and_other_words_are_no_tags() -> None:
    assert split_tag("B-PER.NOM") == ("B", "PER.NOM")
    assert split_tag("I_LOC-2") == ("I", "LOC-2")
    for tag in ("PER", "X-PER", "B-", "", "o"):
        with pytest.raises(ValueError, match="expected O, or"):
            split_tag(tag)
