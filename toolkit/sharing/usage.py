"""A few lines of Python that load a shared model; `{model}` stands where its name goes."""

from __future__ import annotations

from toolkit.sharing.tasks import AUTO_CLASSES, Kind

_PIPELINE = """from transformers import pipeline

{verb} = pipeline("{tag}", model="{{model}}"{options})
print({verb}({example}{call}))
"""
_VERBS = {"token-classification": "find", "text-generation": "write", "fill-mask": "guess"}
_QUESTION = """import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{{model}}")
model = AutoModelForQuestionAnswering.from_pretrained("{{model}}")
batch = tokenizer({example}, return_tensors="pt")
with torch.no_grad():
    found = model(**batch)
start, end = found.start_logits.argmax(), found.end_logits.argmax()
print(tokenizer.decode(batch["input_ids"][0, start : end + 1]))
"""
_TRANSLATION = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{{model}}")
model = AutoModelForSeq2SeqLM.from_pretrained("{{model}}")
batch = tokenizer([{example}], return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""
_FEATURES = """from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{{model}}")
model = AutoModel.from_pretrained("{{model}}")
print(model(**tokenizer([{example}], return_tensors="pt")).last_hidden_state.shape)
"""
_SKLEARN = """import json, os, joblib
from huggingface_hub import snapshot_download

folder = "{{model}}" if os.path.isdir("{{model}}") else snapshot_download("{{model}}")
names = json.load(open(f"{{folder}}/labels.json", encoding="utf-8"))
classify = joblib.load(f"{{folder}}/tfidf.joblib")  # a pickle: load it only from whom you trust
print(names, classify.predict_proba([{example}]))
"""
_WHOLE = {
    "question-answering": _QUESTION,
    "translation": _TRANSLATION,
    "features": _FEATURES,
    "sklearn": _SKLEARN,
}
_ADAPTER = """from peft import PeftModel
from transformers import AutoConfig, {auto}, {processor}

config = AutoConfig.from_pretrained("{{model}}")
base = {auto}.from_pretrained("{base}", config=config, ignore_mismatched_sizes=True)
model = PeftModel.from_pretrained(base, "{{model}}").eval()
reader = {processor}.from_pretrained("{{model}}")
batch = reader({example}, return_tensors="pt")
print({result})
"""
_TEXT = ('"房间很干净，服务也好。"', '"The room was clean and the staff friendly."')
_EXAMPLES = {  # in Chinese, in English
    "text-classification": _TEXT,
    "translation": _TEXT,
    "features": _TEXT,
    "sklearn": _TEXT,
    "pairs": (
        '{"text": "怎么退款？", "text_pair": "我想把钱退回来。"}',
        '{"text": "How do I pay?", "text_pair": "Which cards do you take?"}',
    ),
    "token-classification": (
        '"她打算六月一日去上海旅行。"',
        '"Angela Merkel was born in Hamburg ."',
    ),
    "question-answering": (
        '"他什么时候去了上海？", "他在一九九八年去了上海。"',
        '"When did he go to Paris?", "He went to Paris in 1998."',
    ),
    "text-generation": ('"房间"', '"The room"'),
    "fill-mask": (
        'f"房间很干{guess.tokenizer.mask_token}，服务也好。"',
        'f"The room was {guess.tokenizer.mask_token}."',
    ),
    "image-classification": ('"photo.jpg"', '"photo.jpg"'),
}
_RESULTS = {
    "translation": "reader.batch_decode(model.generate(**batch), skip_special_tokens=True)",
    "text-generation": "reader.batch_decode(model.generate(**batch, max_new_tokens=20))",
    "question-answering": "[model(**batch)[i].argmax() for i in (0, 1)]",
    "token-classification": "model(**batch).logits[0].argmax(-1)",
}
_BEST_LABEL = "config.id2label[model(**batch).logits.argmax(-1).item()]"


def usage_of_model(kind: Kind, remote_code: bool = False) -> str:
    """With transformers, or joblib for scikit-learn."""
    whole = _WHOLE.get(kind.check)
    if whole is not None:
        return whole.format(example=_example(kind))
    options = ""
    if kind.check == "token-classification":
        options = ', aggregation_strategy="simple"'
    if remote_code:
        options += ", trust_remote_code=True"
    tag = kind.pipeline_tag
    verb = _VERBS.get(str(tag), "classify")
    # A text may be no longer than the model's positions, which may be few.
    call = ", max_new_tokens=20" if kind.check == "text-generation" else ""
    return _PIPELINE.format(verb=verb, tag=tag, options=options, example=_example(kind), call=call)


def usage_of_adapter(kind: Kind, base: str) -> str:
    """With peft, on the base model of this name."""
    images = kind.check == "image-classification"
    example = 'Image.open("photo.jpg").convert("RGB")' if images else example_texts_of(kind)
    code = _ADAPTER.format(
        auto=AUTO_CLASSES[kind.check],
        processor="AutoImageProcessor" if images else "AutoTokenizer",
        base=base,
        example=example,
        result=_RESULTS.get(kind.check, _BEST_LABEL),
    )
    return f"from PIL import Image\n{code}" if images else code


def example_texts_of(kind: Kind) -> str:
    """Arguments of a tokenizer, as Python: a text, or the two of a pair."""
    if kind.pairs and kind.check == "text-classification":
        if kind.chinese:
            return '"怎么退款？", "我想把钱退回来。"'
        return '"How do I pay?", "Which cards do you take?"'
    return _example(kind)


def _example(kind: Kind) -> str:
    pairs = kind.pairs and kind.check == "text-classification"
    name = "pairs" if pairs else "fill-mask" if kind.check == "pretraining" else kind.check
    example = _EXAMPLES[name][0 if kind.chinese else 1]
    return f"{kind.prefix!r} + {example}" if kind.prefix else example
