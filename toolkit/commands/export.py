"""`toolkit export`: the model of a run in a form that others can use without this package."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from toolkit.errors import UserError

HELP = (
    "Write the model of a run as a folder that plain transformers, peft or scikit-learn loads "
    "(--format transformers), or as ONNX (--format onnx; classifiers; needs the extra 'export'). "
    "What is written is compared with the run's own model; the status is 1 if it is not equal."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit export`."""
    parser.add_argument(
        "run", metavar="RUN", type=Path, help="directory of a finished run, or a model folder"
    )
    parser.add_argument(
        "--format",
        required=True,
        choices=("onnx", "transformers"),
        help="onnx: model.onnx for onnxruntime, batches and lengths of any size; transformers: "
        "weights, config and tokenizer in HuggingFace's format",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="new or empty folder (default: RUN/export/FORMAT)",
    )
    adapter = parser.add_mutually_exclusive_group()
    adapter.add_argument(
        "--merged",
        action="store_true",
        default=None,
        help="of a run with LoRA or DoRA: the whole model, its updates added to the weights",
    )
    adapter.add_argument(
        "--adapter",
        dest="merged",
        action="store_false",
        default=None,
        help="likewise: the adapter alone, which peft puts on its base model (default where that "
        "is on the Hub)",
    )
    parser.add_argument("--json", metavar="FILE", help="what is said as JSON to FILE; -: only that")


def run(args: argparse.Namespace) -> int:
    """Export and compare; 1 if the outputs differ."""
    from toolkit.console import console
    from toolkit.json_values import check_writable, write_json

    check_writable(args.json)
    folder = args.output or args.run / "export" / args.format
    said = _onnx(args, folder) if args.format == "onnx" else _transformers(args, folder)
    if args.json:
        write_json(said, args.json)
    if args.json != "-":
        for name, value in said.items():
            if name != "usage" and value is not None:
                text = f"{value:.1e}" if isinstance(value, float) else value
                console.print(f"{name}: {text}", soft_wrap=True, markup=False)
        if "usage" in said:
            console.print(f"\n{said['usage']}", soft_wrap=True, markup=False)
    return 0 if said["equal"] else 1


def _onnx(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from toolkit.console import fail
    from toolkit.export.onnx_model import TOLERANCE, export_onnx

    if args.merged is False:
        raise UserError("--adapter is for --format transformers: ONNX holds a whole model.")
    exported = export_onnx(args.run, folder)
    if not exported.equal:
        fail(
            f"{folder}: model.onnx does not compute what the model does: logits differ by "
            f"{exported.largest:.1e}, at most {TOLERANCE:.0e} is rounding. The folder "
            "is left as it is, to be looked at; do not use it."
        )
    return {
        "folder": str(folder),
        "format": "onnx",
        "equal": exported.equal,
        "largest difference": exported.largest,
        "compared": exported.batches,
    }


def _transformers(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from toolkit.console import fail
    from toolkit.sharing.fresh_process import SharingError, check_shareable
    from toolkit.sharing.shareable import write_shareable

    shareable = write_shareable(args.run, folder, merged=args.merged)
    said = {
        "folder": str(folder),
        "format": "transformers",
        "library": shareable.library,
        "task": shareable.pipeline_tag,
        "base model": shareable.base_model,
        "trust_remote_code": shareable.remote_code,
    }
    try:
        largest = check_shareable(shareable, args.run)
    except SharingError as error:
        fail(f"{error} The folder is left as it is, to be looked at; do not use it.")
        return said | {"equal": False}
    usage = shareable.usage_of(str(folder))
    return said | {"equal": True, "largest difference": largest, "usage": usage}
