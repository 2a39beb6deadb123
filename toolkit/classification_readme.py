"""The README of a classifier's run: what came out, and how to use it."""

from __future__ import annotations

from typing import Any

from toolkit.run_readme import Findings, markdown_table, run_readme

_USES = {
    "transformers": """from transformers import pipeline
classify = pipeline("text-classification", model="model", tokenizer="model")
print(classify("房间很干净，服务也好。"))
""",
    "transformers, pairs": """from transformers import pipeline
classify = pipeline("text-classification", model="model", tokenizer="model")
print(classify({"text": "怎么退款？", "text_pair": "我想把钱退回来。"}))
""",
    "frozen": """import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer
tokenizer, encoder = AutoTokenizer.from_pretrained("model"), AutoModel.from_pretrained("model")
classifier = load_file("model/classifier.safetensors")
batch = tokenizer(["房间很干净，服务也好。"], return_tensors="pt")
with torch.no_grad():
    features = encoder(**batch).last_hidden_state.mean(1)  # one text: no padding to leave out
features = torch.nn.functional.normalize(features)
print((features @ classifier["weight"].T + classifier["bias"]).softmax(-1))
""",
    "sklearn": """import joblib
print(joblib.load("model/tfidf.joblib").predict_proba(["房间很干净，服务也好。"]))
""",
    "images": """from transformers import pipeline
classify = pipeline("image-classification", model="model")
print(classify("photo.jpg"))
""",
    "images of our own architecture": """import scratch_models
from transformers import pipeline
scratch_models.enable()  # its classes are not in transformers
classify = pipeline("image-classification", model="model")
print(classify("photo.jpg"))
""",
    "frozen images": """import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import AutoImageProcessor, AutoModel
processor, encoder = AutoImageProcessor.from_pretrained("model"), AutoModel.from_pretrained("model")
classifier = load_file("model/classifier.safetensors")
batch = processor(Image.open("photo.jpg").convert("RGB"), return_tensors="pt")
with torch.no_grad():
    hidden = encoder(**batch).last_hidden_state
features = hidden[:, 0] if hidden.ndim == 3 else hidden.mean((2, 3))  # ViT: the class token
features = torch.nn.functional.normalize(features)
print((features @ classifier["weight"].T + classifier["bias"]).softmax(-1))
""",
    "LSTM": """import torch
from scratch_models import ScratchLSTMForSequenceClassification
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("model")
model = ScratchLSTMForSequenceClassification.from_pretrained("model")
batch = tokenizer(["房间很干净，服务也好。"], return_tensors="pt", return_token_type_ids=False)
with torch.no_grad():
    print(model(**batch).logits.softmax(-1))
""",
}
_USES["frozen, pairs"] = (
    _USES["frozen"]
    .replace('["房间很干净，服务也好。"]', '["怎么退款？"], ["我想把钱退回来。"]')
    .replace("one text", "one pair")
)
_USES["frozen images of our own architecture"] = "import scratch_models\n" + _USES[
    "frozen images"
].replace(
    "processor, encoder =",
    "scratch_models.enable()  # its classes are not in transformers\nprocessor, encoder =",
)


def classification_readme(summary: dict[str, Any]) -> str:
    """A page about a classification run, for whoever opens its folder.

    Args:
        summary: schema version 1, as in ``summary.json``.
    """
    use = _USES[_kind(summary["model"], _examples(summary))]
    return run_readme(summary, classification_findings(summary), use=use)


def classification_findings(summary: dict[str, Any]) -> Findings:
    """What was trained on what, and how often it is right."""
    model, data = summary["model"], summary["data"]
    labels = ", ".join(f"{index} = {name}" for index, name in enumerate(data["label_names"]))
    return Findings(
        f"{model['architecture']} ({model['name']}, method {model['method']}), trained on "
        f"{data['train_examples']:,} {_examples(summary)} of {data['dataset']}; labels: {labels}.",
        markdown_table(
            ("split", "examples", "accuracy", "95% interval", "macro F1"),
            [_row(split, summary[split]) for split in ("validation", "test")],
        ),
    )


def _examples(summary: dict[str, Any]) -> str:
    if summary["task"] == "image-classification":
        return "images"
    return "pairs" if summary["data"].get("pairs") else "texts"


def _row(split: str, metrics: dict[str, Any]) -> list[str]:
    accuracy, macro_f1 = metrics["accuracy"], metrics["macro_f1"]
    low, high = accuracy["interval"]
    return [
        split,
        f"{accuracy['n']:,}",
        f"{accuracy['value']:.4f}",
        f"{low:.4f}-{high:.4f}",
        f"{macro_f1['value']:.4f}",
    ]


def _kind(model: dict[str, Any], examples: str) -> str:
    if examples == "images":
        kind = "frozen images" if model["method"] == "frozen" else "images"
        own = "CifarResNet" in model["architecture"]
        return f"{kind} of our own architecture" if own else kind
    if model["implementation"] == "sklearn":
        return "sklearn"
    if "LSTM" in model["architecture"]:
        return "LSTM"
    kind = "frozen" if model["method"] == "frozen" else "transformers"
    return f"{kind}, pairs" if examples == "pairs" else kind
