"""What an analysis has found, in sentences with their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite

from toolkit.attention.alignment import Alignment
from toolkit.attention.analysis import Analysis, Numbers
from toolkit.attention.sentence import SENTENCE, Gaze, Link, gazes, links, unread
from toolkit.attention.weights import AttentionMaps, Kind
from toolkit.report.wording import listed, percent, rounded
from toolkit.stats import Estimate

KIND_NAMES: dict[Kind, str] = {
    "encoder": "self-attention",
    "decoder": "causal self-attention of the decoder",
    "cross": "cross-attention",
}
PLACE_NAMES = {
    "special": "special tokens",
    "self": "the token itself",
    "previous": "the previous token",
    "next": "the next token",
    "elsewhere": "other tokens",
}
NAMED = 0.4
"""Share of its attention from which on a head is called after a place."""
BROAD = 0.9
"""Share of the greatest entropy from which on a head is said to spread its attention."""
_ROLES = ("special", "self", "previous", "next")


def role(head: Numbers, uniform: Numbers) -> str:
    """The place a head is called after, "spread", or "mixed" where neither can be said.

    A place needs `NAMED` of its attention, and an interval above what a uniform head gives it.
    """
    if "self" in head.shares:  # of cross-attention no place says where in the source it looks
        best = max(_ROLES, key=lambda place: head.shares[place].value)
    else:
        best = "special"
    share = head.shares[best]
    if share.value >= NAMED and share.interval.low > uniform.shares[best].value:
        return best
    return "spread" if head.relative_entropy.value >= BROAD else "mixed"


def with_interval(estimate: Estimate) -> str:
    """A share: "71.0% [68.2, 74.1]"."""
    return f"{percent(estimate.value)} {interval(estimate)}"


def interval(estimate: Estimate) -> str:
    """Of a share, in percent: "[68.2, 74.1]"."""
    low, high = estimate.interval.low, estimate.interval.high
    return f"[{rounded(100 * low)}, {rounded(100 * high)}]"


def head_sentence(layer: int, head: int, numbers: Numbers, uniform: Numbers) -> str:
    """What one head does; layer and head count from 1."""
    name = f"Layer {layer} head {head}"
    kind = role(numbers, uniform)
    if kind == "spread":
        return (
            f"{name} spreads its attention: {rounded(numbers.entropy.value)} bits of entropy, "
            f"{with_interval(numbers.relative_entropy)} of a uniform head's."
        )
    if kind == "mixed":
        return f"{name} has no simple pattern: {_shares(numbers)}."
    share = numbers.shares[kind]
    return (
        f"{name} looks at {PLACE_NAMES[kind]}: {with_interval(share)} of its attention "
        f"(a uniform head: {percent(uniform.shares[kind].value)})."
    )


def _shares(numbers: Numbers) -> str:
    parts = [f"{percent(s.value)} to {PLACE_NAMES[place]}" for place, s in numbers.shares.items()]
    return listed(parts)


def summary(analysis: Analysis) -> list[str]:
    """What the heads of one attention do, taken together."""
    counts = [] if analysis.kind == "cross" else [_counts(analysis)]
    return [*counts, *_strongest(analysis), *_layers(analysis)]


def roles(analysis: Analysis) -> list[list[str]]:
    """By layer and head."""
    return [[role(head, analysis.uniform) for head in layer] for layer in analysis.heads]


def _counts(analysis: Analysis) -> str:
    counted = Counter(name for layer in roles(analysis) for name in layer)
    heads = sum(counted.values())
    said = [
        f"{counted[place]} {'looks' if counted[place] == 1 else 'look'} at {PLACE_NAMES[place]}"
        for place in _ROLES
        if counted[place]
    ]
    if counted["spread"]:
        verb = "spreads its attention" if counted["spread"] == 1 else "spread their attention"
        said.append(f"{counted['spread']} {verb}")
    if counted["mixed"]:
        verb = "has" if counted["mixed"] == 1 else "have"
        said.append(f"{counted['mixed']} {verb} no simple pattern")
    if len(said) == 1:
        return f"All {heads} heads {said[0].partition(' ')[2]}."
    return f"Of {heads} heads {listed(said)}."


def _strongest(analysis: Analysis) -> Iterator[str]:
    """The head that attends most to each place, and whether it is called after it."""
    for place in _ROLES:
        uniform = analysis.uniform.shares.get(place)
        if uniform is None or uniform.value == 0:  # no query can see such a key
            continue
        layer, head, numbers = _most(analysis, place)
        if role(numbers, analysis.uniform) == place:
            yield head_sentence(layer, head, numbers, analysis.uniform)
        else:
            share = numbers.shares[place]
            yield (
                f"No head looks mainly at {PLACE_NAMES[place]}: the most is "
                f"{with_interval(share)} in layer {layer} head {head}, "
                f"{rounded(share.value / uniform.value)} times what a uniform head gives "
                f"({percent(uniform.value)})."
            )


def _most(analysis: Analysis, place: str) -> tuple[int, int, Numbers]:
    """Layer and head, from 1, that attend most to a place."""
    found = list(_all_heads(analysis))
    shares = [numbers.shares[place].value for _, _, numbers in found]
    return found[shares.index(max(shares))]


def _all_heads(analysis: Analysis) -> Iterator[tuple[int, int, Numbers]]:
    for layer, heads in enumerate(analysis.heads, start=1):
        for head, numbers in enumerate(heads, start=1):
            yield layer, head, numbers


def _layers(analysis: Analysis) -> Iterator[str]:
    """Which layer is the broadest, and which looks furthest."""
    uniform = analysis.uniform
    most = max(_numbered(analysis), key=lambda layer: layer[1].entropy.value)
    least = min(_numbered(analysis), key=lambda layer: layer[1].entropy.value)
    if len(analysis.layers) > 1:
        yield (
            f"Mean entropy of a head is highest in layer {most[0]}, {_bits(most[1])}, and lowest "
            f"in layer {least[0]}, {_bits(least[1])}; a uniform head has "
            f"{rounded(uniform.entropy.value, 2)} bits."
        )
    else:
        yield (
            f"Mean entropy of a head is {_bits(most[1])}; a uniform head has "
            f"{rounded(uniform.entropy.value, 2)} bits."
        )
    distances = [(n, layer.distance) for n, layer in _numbered(analysis) if layer.distance]
    distances = [(n, distance) for n, distance in distances if isfinite(distance.value)]
    if distances and uniform.distance is not None:
        near = min(distances, key=lambda found: found[1].value)
        far = max(distances, key=lambda found: found[1].value)
        further = f", and furthest in layer {far[0]}, {_tokens(far[1])}" if near != far else ""
        yield (
            f"The tokens of the text that get attention are nearest in layer {near[0]}, "
            f"{_tokens(near[1])} away on average{further}; with a uniform head "
            f"{rounded(uniform.distance.value)}."
        )


def _numbered(analysis: Analysis) -> Sequence[tuple[int, Numbers]]:
    return list(enumerate(analysis.layers, start=1))


def _bits(numbers: Numbers) -> str:
    relative = numbers.relative_entropy.value
    return f"{rounded(numbers.entropy.value, 2)} bits ({percent(relative)} of the most possible)"


def _tokens(distance: Estimate) -> str:
    low, high = distance.interval.low, distance.interval.high
    return f"{rounded(distance.value)} tokens [{rounded(low)}, {rounded(high)}]"


def alignment_sentences(alignment: Alignment) -> list[str]:
    """How often the largest weight lies in the right slot of the source."""
    layer, head = alignment.best
    heads = sum(map(len, alignment.heads))
    texts = "1 date or time" if alignment.texts == 1 else f"{alignment.texts:,} dates and times"
    said = [
        f"Layer {layer + 1} head {head + 1}, the best of {heads}, attends most to the right slot "
        f"of the source for {with_interval(alignment.heads[layer][head])} of the "
        f"{alignment.tokens:,} output tokens of {texts}; a source token taken at random is right "
        f"for {percent(alignment.chance)}."
    ]
    for number, estimate in enumerate(alignment.layers, start=1):
        said.append(f"The mean of the heads of layer {number}: {with_interval(estimate)}.")
    slots = {name: slot.heads[layer][head].value for name, slot in alignment.by_slot.items()}
    parts = [
        f"{name} {percent(value)} (chance {percent(alignment.by_slot[name].chance)})"
        for name, value in sorted(slots.items(), key=lambda item: -item[1])
    ]
    said.append(f"By slot, that head: {listed(parts)}.")
    return [*said, *_misses(alignment)]


def _misses(alignment: Alignment) -> Iterator[str]:
    """What the best head looks at where it mostly misses a slot."""
    layer, head = alignment.best
    for name, slot in alignment.by_slot.items():
        missed = slot.misses[layer][head]
        if slot.heads[layer][head].value >= 0.5 or not missed:
            continue
        total = sum(count for _, count in missed)
        parts = [f"“{label}” ({percent(count / total)})" for label, count in missed[:3]]
        yield f"Where that head misses the {name}, it looks mostly at {listed(parts)}."


def sentence_findings(maps: AttentionMaps) -> list[str]:
    """What the words of the chapter's sentence attend to; or that the model cannot read it."""
    missing = unread(maps)
    if missing:
        return [
            f"Nothing can be said of {SENTENCE}: to this model's vocabulary "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} no whole "
            f"{'token' if len(missing) == 1 else 'tokens'} but bytes or unknown."
        ]
    said = [_gaze(gaze) for gaze in gazes(maps)]
    said += [_link(link) for link in links(maps)]
    return [
        *said,
        "One sentence proves nothing: such links are found by looking at all heads, which is why "
        "each is ranked among all pairs of words.",
    ]


def _gaze(gaze: Gaze) -> str:
    looked = [f"{label} ({percent(share)})" for label, share in gaze.others[:3]]
    others = f"beside them most at {listed(looked)}" if looked else "at nothing else it can see"
    return (
        f"{gaze.word} attends, all heads together, {percent(gaze.special)} to special tokens, "
        f"{percent(gaze.itself)} to itself, {others}."
    )


def _link(link: Link) -> str:
    place = f"{_ordinal(link.rank)} of {link.pairs} pairs"
    verdict = "it stands out" if link.stands_out else "it does not stand out"
    near = "; the two are neighbours, so a head that looks at neighbours is enough"
    return (
        f"{link.query} → {link.key}: strongest in layer {link.layer} head {link.head}, "
        f"{percent(link.share)} (the other words there give {link.key} "
        f"{percent(link.by_others)}); {place}, {verdict}"
        f"{near if link.neighbours and link.stands_out else ''}."
    )


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if 10 < number % 100 < 14 else endings.get(number % 10, 'th')}"
