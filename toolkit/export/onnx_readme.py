"""The README of an exported folder: what it holds, and the lines that use it."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.report.markdown_blocks import escape
from toolkit.sharing.tasks import Kind
from toolkit.sharing.usage import example_texts_of

_CODE = """import json, onnxruntime
{image}from transformers import {reader}

reader, session = {reader}.from_pretrained("."), onnxruntime.InferenceSession("model.onnx")
batch = reader({example}, return_tensors="pt")
[logits] = session.run(None, {{i.name: batch[i.name].numpy() for i in session.get_inputs()}})
names = json.load(open("config.json", encoding="utf-8"))["id2label"]
print({result})
"""
_PAGE = """# {title}, as ONNX

`model.onnx` reads {inputs} and gives `logits` [{shape}]. {sizes}
Its logits differ by {largest:.1e} at most from those of PyTorch (check.json).
config.json names the labels (`id2label`).

## Use it (in this folder)

```python
{code}
```
"""


def onnx_readme(title: str, kind: Kind, inputs: Sequence[str], largest: float) -> str:
    """A page for whoever opens the folder.

    Args:
        title: of the run.
        inputs: names of the inputs of `model.onnx`.
        largest: difference of a logit from PyTorch's.
    """
    images, tokens = kind.check == "image-classification", kind.check == "token-classification"
    best = "names[str(logits[0].argmax())]"
    code = _CODE.format(
        reader="AutoImageProcessor" if images else "AutoTokenizer",
        image="from PIL import Image\n" if images else "",
        example='Image.open("photo.jpg").convert("RGB")' if images else example_texts_of(kind),
        result="[names[str(i)] for i in logits[0].argmax(-1)]" if tokens else best,
    )
    sizes = "Batch is of any size." if images else "Batch and length are of any size."
    return _PAGE.format(
        title=escape(title),
        inputs=", ".join(f"`{name}`" for name in inputs),
        shape="batch, length, labels" if tokens else "batch, labels",
        sizes=sizes,
        largest=largest,
        code=code.strip(),
    )
