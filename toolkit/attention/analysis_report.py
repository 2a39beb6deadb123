"""An analysis as a report: findings first, then the numbers of every layer and head."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from toolkit.attention import findings
from toolkit.attention.alignment import Alignment, SlotAlignment
from toolkit.attention.analysing import ModelAnalysis
from toolkit.attention.analysis import Analysis, Numbers
from toolkit.attention.sentence import SENTENCE, gazes, links, unread
from toolkit.json_values import without_nan
from toolkit.report.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Details,
    Document,
    Paragraph,
    Quote,
    Section,
    Table,
)
from toolkit.report.files import write_document
from toolkit.report.wording import capitalised, percent, rounded
from toolkit.stats import Estimate

SCHEMA_VERSION = 1
_ALIGNMENT = "Alignment of dates and times"
_SHORT = {
    "special": "special", "self": "itself", "previous": "previous", "next": "next",
    "elsewhere": "elsewhere", "spread": "spread", "mixed": "mixed",
}  # fmt: skip


def write_analysis(found: ModelAnalysis, folder: str | Path, command: str) -> Path:
    """Write report.html, report.md and report.json; returns the path of report.html.

    Raises:
        UserError: the folder cannot be written.
    """
    data = as_values(found) | {"command": command}
    markdown = write_document(as_document(found, command), folder, data)
    return markdown.with_name("report.html")


def summary_lines(found: ModelAnalysis) -> list[tuple[str, list[str]]]:
    """Headings with what was found, in words: what a terminal shows."""
    lines = [
        (capitalised(findings.KIND_NAMES[kind]), findings.summary(analysis))
        for kind, analysis in found.kinds.items()
    ]
    if found.alignment is not None:
        lines.append((_ALIGNMENT, findings.alignment_sentences(found.alignment)))
    elif "cross" in found.kinds:
        lines.append((_ALIGNMENT, [f"Nothing can be aligned: {found.no_alignment}."]))
    lines.append((SENTENCE, _of_sentence(found)))
    return lines


def as_document(found: ModelAnalysis, command: str) -> Document:
    """The report as blocks."""
    blocks: list[Block] = [Paragraph(_lead(found), "lead"), _how(found)]
    for kind, analysis in found.kinds.items():
        blocks.append(_kind_section(findings.KIND_NAMES[kind], analysis))
    if found.alignment is not None:
        blocks.append(_alignment_section(found.alignment))
    elif "cross" in found.kinds:
        why = Paragraph(f"Nothing can be aligned: {found.no_alignment}.")
        blocks.append(Section(_ALIGNMENT, [why]))
    blocks.append(
        Section(
            "The sentence of the chapter",
            [Quote(SENTENCE, "zh"), Bullets(_of_sentence(found))],
        )
    )
    blocks.append(Section("Again", [Code(command)]))
    return Document(f"What the heads of {found.model} attend to", blocks=blocks)


def as_values(found: ModelAnalysis) -> dict[str, Any]:
    """Everything as JSON values, layers and heads counted from 1."""
    plain: dict[str, Any] = without_nan(
        {
            "schema_version": SCHEMA_VERSION,
            "model": found.model,
            "model_class": found.model_class,
            "texts": {
                "number": len(found.corpus.rows),
                "description": found.corpus.description,
                "cut": found.cut,
            },
            "findings": dict(summary_lines(found)),
            "attention": {kind: _analysis(analysis) for kind, analysis in found.kinds.items()},
            "alignment": None if found.alignment is None else _alignment(found.alignment),
            "no_alignment": found.no_alignment or None,
            "sentence": _sentence(found),
        }
    )
    return plain


def _lead(found: ModelAnalysis) -> str:
    said = []
    for kind, analysis in found.kinds.items():
        if kind == "cross":  # the alignment says more of it
            continue
        counts = findings.summary(analysis)[0]
        said.append(f"{capitalised(findings.KIND_NAMES[kind])}: {counts}")
    if found.alignment is not None:
        said.append(findings.alignment_sentences(found.alignment)[0])
    return " ".join(said)


def _how(found: ModelAnalysis) -> Section:
    cut = f" {found.cut:,} of them {'was' if found.cut == 1 else 'were'} cut." if found.cut else ""
    given = " It was given the right translations." if "cross" in found.kinds else ""
    aligned = (
        ", those of the alignment Wilson's over output tokens"
        if found.alignment is not None
        else ""
    )
    lines = [
        f"{found.model_class} read {found.corpus.description}.{cut}{given}",
        "Counted is what the tokens of the texts attend to; what special tokens attend to is not. "
        "A special token counts as special also where it is a neighbour.",
        f"Intervals (95%) are percentile bootstrap ones over texts{aligned}.",
        "A uniform head gives the same to every token that a query can see.",
        f"A head is called after a place that gets at least {percent(findings.NAMED, 0)} of its "
        "attention, surely more than a uniform head gives it; it spreads its attention where its "
        f"entropy is at least {percent(findings.BROAD, 0)} of the most possible. The highest of "
        "many heads was chosen on the texts it is measured on.",
        "Attention says where a head takes its input from, not why the model decides as it does.",
    ]
    return Section("How this was counted", [Bullets(lines)])


def _kind_section(name: str, analysis: Analysis) -> Section:
    heads = [
        (f"{layer}.{head}", numbers)
        for layer, row in enumerate(analysis.heads, start=1)
        for head, numbers in enumerate(row, start=1)
    ]
    layers = [(f"layer {n}", numbers) for n, numbers in enumerate(analysis.layers, start=1)]
    return Section(
        capitalised(name),
        [
            Bullets(findings.summary(analysis)),
            Paragraph(f"{analysis.queries:,} tokens of {analysis.texts:,} texts.", "caption"),
            _numbers_table(
                analysis, [*layers, ("a uniform head", analysis.uniform)],
                "Means over the heads of each layer; below each its interval.",
            ),
            *([] if analysis.kind == "cross" else [_roles_table(analysis)]),
            Details(
                f"All {len(heads)} heads",
                [_numbers_table(analysis, heads, "Heads by layer and number.")],
            ),
        ],
    )  # fmt: skip


def _numbers_table(analysis: Analysis, rows: Sequence[tuple[str, Numbers]], caption: str) -> Table:
    far = [] if analysis.kind == "cross" else ["distance, tokens"]
    header = [
        "", *(findings.PLACE_NAMES[place] for place in analysis.places), *far, "entropy, bits",
        "of the most possible",
    ]  # fmt: skip
    cells = [[Cell(name), *_cells(analysis, numbers)] for name, numbers in rows]
    return Table(header, cells, range(1, len(header)), caption)


def _cells(analysis: Analysis, numbers: Numbers) -> list[Cell]:
    cells = [_share(numbers.shares[place]) for place in analysis.places]
    if numbers.distance is not None:
        cells.append(_plain(numbers.distance))
    return [*cells, _plain(numbers.entropy), _share(numbers.relative_entropy)]


def _share(estimate: Estimate) -> Cell:
    return Cell(percent(estimate.value), detail=findings.interval(estimate))


def _plain(estimate: Estimate) -> Cell:
    if not isfinite(estimate.value):
        return Cell("–")
    low, high = estimate.interval.low, estimate.interval.high
    return Cell(rounded(estimate.value, 2), detail=f"[{rounded(low, 2)}, {rounded(high, 2)}]")


def _roles_table(analysis: Analysis) -> Table:
    """Layers by heads: what each is called, and the share it is called so for."""
    width = max(map(len, analysis.heads))
    rows = []
    for layer, (heads, names) in enumerate(
        zip(analysis.heads, findings.roles(analysis), strict=True), start=1
    ):
        cells = [_role_cell(*pair) for pair in zip(heads, names, strict=True)]
        rows.append([Cell(f"layer {layer}"), *cells])
    return Table(
        ["", *(f"head {head}" for head in range(1, width + 1))],
        rows,
        range(1, width + 1),
        "What each head looks at, and how much of its attention that is; of a head that spreads "
        "its attention or has no simple pattern (mixed) the entropy, of the most possible.",
    )


def _role_cell(numbers: Numbers, name: str) -> Cell:
    share = numbers.shares.get(name, numbers.relative_entropy).value
    shade = min(share, 1.0) if name in numbers.shares else None
    return Cell(f"{_SHORT[name]} {percent(share, 0)}", shade=shade)


def _alignment_section(found: Alignment) -> Section:
    layer, head = found.best
    width = len(found.heads[0])
    heads = [
        [Cell(f"layer {n}"), *map(_share, row), _share(mean)]
        for n, (row, mean) in enumerate(zip(found.heads, found.layers, strict=True), start=1)
    ]
    slots = [
        [
            Cell(name),
            Cell(f"{slot.tokens:,}"),
            _share(slot.heads[layer][head]),
            *map(_share, slot.layers),
            Cell(percent(slot.chance)),
        ]
        for name, slot in found.by_slot.items()
    ]
    layers = [f"mean of layer {n}" for n in range(1, len(found.layers) + 1)]
    return Section(
        _ALIGNMENT,
        [
            Bullets(findings.alignment_sentences(found)),
            Paragraph(
                "An output token of a slot (the year, the month, …) is aligned where the source "
                "token that it attends to most, while it is written, is of the same slot. A token "
                "is of the slot that it has characters of; of two slots, it is not counted."
            ),
            Table(
                ["", *(f"head {n}" for n in range(1, width + 1)), "mean of the heads"],
                heads,
                range(1, width + 2),
                f"Share of {found.tokens:,} output tokens that are aligned; chance: "
                f"{percent(found.chance)}.",
            ),
            Table(
                ["slot", "output tokens", f"layer {layer + 1} head {head + 1}", *layers, "chance"],
                slots,
                range(1, len(layers) + 4),
                "The same by slot.",
            ),
        ],
    )


def _analysis(found: Analysis) -> dict[str, Any]:
    return {
        "texts": found.texts,
        "queries": found.queries,
        "uniform": _numbers(found.uniform),
        "layers": [
            {"layer": n, **_numbers(numbers)} for n, numbers in enumerate(found.layers, start=1)
        ],
        "heads": [
            {"layer": layer, "head": head, "role": name, **_numbers(numbers)}
            for layer, (row, names) in enumerate(
                zip(found.heads, findings.roles(found), strict=True), start=1
            )
            for head, (numbers, name) in enumerate(zip(row, names, strict=True), start=1)
        ],
    }


def _numbers(numbers: Numbers) -> dict[str, Any]:
    return {
        "shares": {place: _estimate(share) for place, share in numbers.shares.items()},
        "distance": None if numbers.distance is None else _estimate(numbers.distance),
        "entropy_bits": _estimate(numbers.entropy),
        "relative_entropy": _estimate(numbers.relative_entropy),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {"value": estimate.value, "interval": dataclasses.asdict(estimate.interval)}


def _alignment(found: Alignment) -> dict[str, Any]:
    layer, head = found.best

    def of(part: Any) -> dict[str, Any]:
        return {
            "tokens": part.tokens,
            "chance": part.chance,
            "heads": [[_estimate(one) for one in row] for row in part.heads],
            "layers": [_estimate(one) for one in part.layers],
        }

    def with_misses(slot: SlotAlignment) -> dict[str, Any]:
        misses = [[[list(one) for one in head] for head in row] for row in slot.misses]
        return {**of(slot), "misses": misses}

    return {
        "texts": found.texts,
        "best": {"layer": layer + 1, "head": head + 1},
        **of(found),
        "by_slot": {name: with_misses(slot) for name, slot in found.by_slot.items()},
    }


def _of_sentence(found: ModelAnalysis) -> list[str]:
    if found.sentence_cut:
        return [
            f"Nothing can be said of {SENTENCE}: it was cut to {len(found.sentence.queries)} "
            "tokens. --max-tokens allows more, up to what the model can read."
        ]
    return findings.sentence_findings(found.sentence)


def _sentence(found: ModelAnalysis) -> dict[str, Any]:
    maps = found.sentence
    missing = unread(maps)
    return {
        "text": SENTENCE,
        "tokens": list(maps.queries.labels),
        "no_whole_token": missing,
        "gazes": [] if missing else [dataclasses.asdict(gaze) for gaze in gazes(maps)],
        "links": []
        if missing
        else [dataclasses.asdict(link) | {"stands_out": link.stands_out} for link in links(maps)],
    }
