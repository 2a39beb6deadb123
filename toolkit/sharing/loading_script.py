"""Load a shared folder as a stranger would, without this package, and write what it computes.

Run by its path in a process of its own: `python -P loading_script.py request.json`. It imports
nothing of ours; `outputs` is what the other side of the comparison calls too.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

BLOCKED = ("scratch_models", "toolkit", "recipes")


class Blocked:
    """Finds our packages before Python does, and says that they are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise for a module of ours; None leaves all others to Python."""
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def outputs(model: Any, processor: Any, request: dict[str, Any]) -> dict[str, np.ndarray]:
    """What a model computes of the inputs of a request, on the CPU.

    Args:
        model: in evaluation mode; of scikit-learn for the check "sklearn".
        processor: tokenizer, or image processor.
        request: `check`; `texts`, each a list of one text or two, or `images`, names of files;
            `max_length` in tokens.

    Returns:
        `probabilities` for "sklearn"; else `inputs` and one array for every output, such as
        `logits`; zero where there is padding.
    """
    import torch

    if request["check"] == "sklearn":
        return {"probabilities": model.predict_proba([text for [text] in request["texts"]])}
    found: dict[str, np.ndarray] = {}
    with torch.no_grad():
        for number, batch in enumerate(_batches(processor, request)):
            for name, tensor in _results(model, batch, request["check"]).items():
                found[f"{name} {number}"] = tensor.float().numpy()
    return found


def _batches(processor: Any, request: dict[str, Any]) -> list[dict[str, Any]]:
    if request["images"]:
        from PIL import Image

        images = [Image.open(name).convert("RGB") for name in request["images"]]
        return [dict(processor(images, return_tensors="pt"))]
    texts = request["texts"]
    groups = [texts] if processor.pad_token is not None else [[text] for text in texts]
    limit = min(request["max_length"], processor.model_max_length)
    return [
        dict(
            processor(
                *map(list, zip(*group, strict=True)), padding=len(group) > 1, truncation=True,
                max_length=limit, return_tensors="pt",
            )
        )
        for group in groups
    ]  # fmt: skip


def _results(model: Any, batch: dict[str, Any], check: str) -> dict[str, Any]:
    import torch

    inputs = batch["pixel_values"] if "pixel_values" in batch else batch["input_ids"]
    results = {"inputs": inputs}
    if check == "translation":
        start = model.generation_config.decoder_start_token_id
        if start is None:
            start = model.config.decoder_start_token_id
        begun = torch.full((len(inputs), 4), start)
        results["logits"] = model(**batch, decoder_input_ids=begun).logits
        results["generated"] = model.generate(**batch, max_new_tokens=20, do_sample=False)
        return results
    found = model(**batch)
    for name in ("logits", "prediction_logits", "start_logits", "end_logits", "last_hidden_state"):
        values = found.get(name) if hasattr(found, "get") else getattr(found, name, None)
        if values is not None:
            results[name] = values
    if "attention_mask" not in batch:
        return results
    mask = batch["attention_mask"]
    for name, values in results.items():
        if values.shape[:2] == mask.shape and name != "inputs":
            results[name] = values * mask.view(*mask.shape, *[1] * (values.ndim - 2))
    return results


def _load(request: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Model, processor and what is to be reported of the loading."""
    folder = request["folder"]
    if request["check"] == "sklearn":
        import joblib

        names = json.loads((Path(folder) / "labels.json").read_text(encoding="utf-8"))
        return joblib.load(Path(folder) / "tfidf.joblib"), None, {"labels": names}
    import transformers

    trust = {"trust_remote_code": True} if request["remote_code"] else {}
    auto = getattr(transformers, request["auto_class"])
    kind = "AutoImageProcessor" if request["images"] else "AutoTokenizer"
    processor = getattr(transformers, kind).from_pretrained(folder, **trust)
    if request["library"] == "peft":
        peft = importlib.import_module("peft")
        config = transformers.AutoConfig.from_pretrained(folder)
        base = auto.from_pretrained(
            request["base_model"], config=config, ignore_mismatched_sizes=True
        )
        model = peft.PeftModel.from_pretrained(base, folder)
        report: dict[str, Any] = {}
    else:
        model, info = auto.from_pretrained(folder, output_loading_info=True, **trust)
        report = {
            name: sorted(map(str, info[name]))
            for name in ("missing_keys", "unexpected_keys", "mismatched_keys")
        }
    names = model.config.id2label or {}
    report["labels"] = [names[index] for index in sorted(names)]
    return model.eval(), processor, report


def main(file: str) -> None:
    """Answer a request: `answer.json` and `answer.npz` beside it.

    An error of loading or computing is an answer: its stage and what it says.
    """
    sys.meta_path.insert(0, Blocked())
    place = Path(file).parent
    request = json.loads(Path(file).read_text(encoding="utf-8"))
    answer: dict[str, Any] = {}
    stage = "it cannot be loaded"
    try:
        import torch

        torch.set_num_threads(request["threads"])
        model, processor, answer = _load(request)
        stage = "it cannot be used"
        found: dict[str, Any] = dict(outputs(model, processor, request))
        np.savez(place / "answer.npz", **found)
        stage = "its lines of usage do not work"
        del model
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(request["usage"], "usage", "exec"), {"__name__": "usage"})
        answer["printed"] = printed.getvalue()
    except Exception as error:  # of whatever kind: this process has nobody else to tell
        answer = {"failed": stage, "error": f"{type(error).__name__}: {error}"}
    (place / "answer.json").write_text(json.dumps(answer, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
