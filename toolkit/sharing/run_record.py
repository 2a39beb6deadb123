"""What a run wrote down about itself, as it may be published: without paths of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.comparison.saved_run import load_summary
from toolkit.config_files import read_yaml
from toolkit.json_values import read_object_if_there
from toolkit.sharing.local_paths import without_paths, without_paths_in_command


@dataclass(frozen=True)
class RunRecord:
    """A complete run.

    Args:
        folder: its directory.
        summary, config, data, environment: its summary.json, config.yaml, data.json and
            environment.json; empty where it has none of them.
    """

    folder: Path
    summary: dict[str, Any]
    config: dict[str, Any]
    data: dict[str, Any]
    environment: dict[str, Any]

    @property
    def training_summary(self) -> dict[str, Any]:
        """Everything that a reader can check the card's numbers with."""
        return {**self.summary, "settings": self.config}


def read_record(run: Path) -> RunRecord:
    """Read a complete run.

    Raises:
        UserError: a file is missing or damaged.
    """
    summary = load_summary(run / "summary.json")
    config = read_yaml(run / "config.yaml") if (run / "config.yaml").is_file() else {}
    published = without_paths(summary)
    # Names that only look like paths ("tcp/ip/udp").
    if "label_names" in summary["data"]:
        published["data"]["label_names"] = summary["data"]["label_names"]
    published["command"] = without_paths_in_command(str(summary.get("command", "")))
    return RunRecord(
        run,
        published,
        {key: value for key, value in without_paths(config).items() if key not in _OF_THE_MACHINE},
        read_object_if_there(run / "data.json"),
        read_object_if_there(run / "environment.json"),
    )


_OF_THE_MACHINE = (
    "output_dir",
    "tracker",
    "dry_run",
    "dry_run_json",
    "lr_finder",
    "push_to_hub",
    "private",
)
"""Settings that say nothing about the model."""
