"""Names that pick layers of a model the way peft does: every module whose path ends with one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

Where = tuple[Collection[str], Collection[str]]


def modules_of(parameters: Iterable[str]) -> set[str]:
    """The paths of all modules that hold the parameters, directly or further down."""
    return {path for name in parameters for path in _ancestors(name)}


def _ancestors(path: str) -> Iterator[str]:
    """`a.b.c` -> `a.b`, `a`."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _endings(path: str) -> Iterator[str]:
    """`a.b.c` -> `c`, `b.c`, `a.b.c`."""
    parts = path.split(".")
    for first in range(len(parts) - 1, -1, -1):
        yield ".".join(parts[first:])


def shortest_names(
    chosen: Collection[str], modules: Collection[str], elsewhere: Where = ((), ())
) -> list[str]:
    """The shortest endings of paths by which peft finds the chosen modules and no others.

    Args:
        chosen: paths of modules.
        modules: paths of all modules of the model.
        elsewhere: the modules of another model, and those that may be found there.
    """
    wrong: set[str] = set()
    for paths, allowed in ((modules, chosen), elsewhere):
        for path in set(paths) - set(allowed):
            wrong.update(_endings(path))
    names = set()
    for path in chosen:
        names.add(next((ending for ending in _endings(path) if ending not in wrong), path))
    return sorted(names)


def covering_modules(names: Collection[str] | None, renamed: Mapping[str, str]) -> list[str] | None:
    """`modules_to_save` for a model whose parameters have other names.

    Args:
        names: endings of the paths of modules; those that no module has stay as they are.
        renamed: every parameter of the model and its name in the other one.

    Raises:
        ValueError: what is one module here is none there.
    """
    if names is None:
        return None
    inside: dict[str, set[str]] = defaultdict(set)
    there: dict[str, set[str]] = defaultdict(set)
    for name, other in renamed.items():
        for path in _ancestors(name):
            inside[path].add(other)
        for path in _ancestors(other):
            there[path].add(other)
    found = set()
    for name in names:
        paths = [path for path in inside if path == name or path.endswith(f".{name}")]
        if not paths:
            found.add(name)
        for path in paths:
            same = [other for other, content in there.items() if content == inside[path]]
            if not same:
                raise ValueError(f"{path} (modules_to_save) is no one module in the other class.")
            kept = [other for other in same if _leaf(other) == _leaf(path)]
            chosen = min(kept or same, key=len)
            found.update(shortest_names([chosen], there))
    return sorted(found)


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]
