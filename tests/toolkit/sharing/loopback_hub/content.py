"""What a Hub holds, and what it says of files and cards."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

LFS_NAMES = re.compile(r".*\.(safetensors|bin|joblib|onnx|png|model)|.*tokenizer\.json")
GIT_ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True)
class User:
    """Whose token it is, and what it may do."""

    name: str
    role: str = "write"  # or "read"
    organisations: tuple[str, ...] = ()

    def may_write_to(self, owner: str) -> bool:
        return self.role == "write" and owner in (self.name, *self.organisations)


@dataclass
class Repository:
    """A model repository: its commits, each a tree of path -> content."""

    private: bool
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)

    @property
    def head(self) -> str:
        return self.commits[-1][0]

    def commit(self, files: dict[str, bytes]) -> str:
        digest = hashlib.sha1(f"{len(self.commits)} {sorted(files)}".encode())
        for content in files.values():
            digest.update(content)
        self.commits.append((digest.hexdigest(), files))
        return self.head

    def tree(self, revision: str) -> dict[str, bytes] | None:
        if revision in ("main", ""):
            return self.commits[-1][1]
        return next((files for oid, files in self.commits if oid == revision), None)


@dataclass
class Fault:
    """How the next requests that match go wrong.

    `status`: answer with it; `drop`: read half of what is sent and cut the connection;
    `lose_answer`: do what is asked, then cut the connection; `delay`: seconds before the answer.
    """

    method: str
    path: re.Pattern[str]
    times: int
    status: int | None = None
    drop: bool = False
    lose_answer: bool = False
    delay: float = 0.0


def git_hash(content: bytes) -> str:
    """SHA-1 of a git blob."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_lfs(path: str, size: int) -> bool:
    return size > 0 and (LFS_NAMES.fullmatch(path) is not None or size > 10 * 2**20)


def described(path: str, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "file", "path": path, "size": len(content)}
    if is_lfs(path, len(content)):
        oid = hashlib.sha256(content).hexdigest()
        pointer = (
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
        ).encode()
        lfs = {"oid": oid, "size": len(content), "pointerSize": len(pointer)}
        return {**found, "oid": git_hash(pointer), "lfs": lfs}
    return {**found, "oid": git_hash(content)}


def front_matter(text: str) -> str | None:
    """The YAML in front of a card; None where there is none."""
    found = re.match(r"---\r?\n(.*?)\r?\n---(\r?\n|$)", text, flags=re.DOTALL)
    return None if found is None else found[1]


def card_problem(text: str) -> str | None:
    """What is wrong with a card's metadata; the checks of the Hub that ours could fail."""
    card = front_matter(text)
    if card is None:
        return None
    try:
        metadata = yaml.safe_load(card)
    except yaml.YAMLError as error:
        return f"the metadata is no YAML: {error}"
    if not isinstance(metadata, dict):
        return "the metadata is no mapping"
    for key in ("language", "license", "base_model", "datasets", "tags", "metrics"):
        value = metadata.get(key, [])
        for entry in value if isinstance(value, list) else [value]:
            if not isinstance(entry, str):
                return f'"{key}" must be a string or an array of strings'
    for model in metadata.get("model-index", []):
        if not model.get("name"):
            return '"model-index[0].name" is required'
        for result in model["results"]:
            for metric in result["metrics"]:
                if isinstance(metric.get("value"), bool) or metric.get("value") is None:
                    return '"model-index[0].results[0].metrics[0].value" is required'
                if metric["value"] != metric["value"]:
                    return "a value is not a number"
    return None
