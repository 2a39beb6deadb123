"""Entities: equal to transformers' pipeline, with the places they have in the text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

from toolkit.prediction import Options, open_model, predict
from toolkit.prediction.batches import BatchLimits
from toolkit.prediction.tagging import Tagger

from .conftest import LETTERS, Finished


def some_texts(longest: int, count: int = 30) -> list[str]:
    generator = random.Random(2)
    made = ["".join(generator.choices(LETTERS, k=generator.randint(1, longest)))
            for _ in range(count)]  # fmt: skip
    return [*made, "今天 酒店　好\n", "好" * longest]


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_entities_are_those_of_the_pipeline(tagger: Path, implementation: str) -> None:
    texts = some_texts(30)
    options = Options(implementation=implementation, batch_size=5)
    answers = predict(open_model(str(tagger), options), texts).answers
    find = pipeline(
        "token-classification",
        model=AutoModelForTokenClassification.from_pretrained(tagger),
        tokenizer=AutoTokenizer.from_pretrained(tagger),
        aggregation_strategy="simple",
    )
    count = 0
    for text, answer in zip(texts, answers, strict=True):
        expected = [
            (one["entity_group"], one["start"], one["end"], pytest.approx(one["score"], abs=1e-5))
            for one in find(text)
        ]
        found = [(e["type"], e["start"], e["end"], e["score"]) for e in answer["entities"]]
        assert found == expected
        assert all(text[e["start"] : e["end"]] == e["text"] for e in answer["entities"])
        count += len(found)
    assert count > 50


def test_long_texts_are_read_in_windows_and_every_token_has_a_tag(tagger: Path) -> None:
    texts = some_texts(100)
    answers = predict(open_model(str(tagger)), texts).answers
    model = AutoModelForTokenClassification.from_pretrained(tagger)
    tokenizer = AutoTokenizer.from_pretrained(tagger)
    for text, answer in zip(texts, answers, strict=True):
        assert answer["tagged_tokens"] == [letter for letter in text if letter.strip()]
        assert len(answer["tags"]) == len(answer["tagged_tokens"])
        # The first token is in the first window, whatever the length.
        ids = tokenizer(text, truncation=True, max_length=32, return_tensors="pt")
        with torch.no_grad():
            first = int(model(**ids).logits[0, 1].argmax())
        assert answer["tags"][0] == model.config.id2label[first]


def test_empty_texts_lists_of_tokens_and_words(tagger: Path) -> None:
    model = open_model(str(tagger))
    answers = predict(model, ["", "　", ["酒店", "好"], [], "酒店 好"]).answers
    for answer in (answers[0], answers[1], answers[3]):
        assert answer == {"entities": [], "tagged_tokens": [], "tags": [],
                          "prediction_note": "no text"}  # fmt: skip
    assert answers[2]["tagged_tokens"] == ["酒店", "好"]  # as they were given
    assert len(answers[2]["tags"]) == 2
    assert answers[4]["tagged_tokens"] == ["酒", "店", "好"]


class Constant(torch.nn.Module):
    """Says of every token what its id says."""

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(tags)[torch.arange(200) % tags])

    def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
        from types import SimpleNamespace

        return SimpleNamespace(logits=4 * self.weight[input_ids])


@pytest.mark.parametrize("side", ["left", "right"])
def test_tags_belong_to_the_first_pieces_of_words_wherever_padding_stands(
    tmp_path: Path, side: str
) -> None:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ham", "##burg", "is", "##n", ".",
                  "北", "京"]  # fmt: skip
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, padding_side=side)
    names = ["O", "B-A", "I-A", "B-B", "I-B"]
    tagger = Tagger(Constant(5).eval(), tokenizer, names, limit=6, overlap=1, unit=None,
                    limits=BatchLimits(3))  # fmt: skip
    text = "Hamburg isn. 北京"
    [long, short] = predict(tagger, [text, "is."]).answers
    # Ids: ham 5 -> O, is 7 -> I-A, . 9 -> I-B, 北 10 -> O, 京 11 -> B-A
    assert long["tagged_tokens"] == ["Hamburg", "isn", ".", "北", "京"]
    assert long["tags"] == ["O", "I-A", "I-B", "O", "B-A"]
    assert [(e["text"], e["type"], e["start"], e["end"]) for e in long["entities"]] == [
        ("isn", "A", 8, 11), (".", "B", 11, 12), ("京", "A", 14, 15),
    ]  # fmt: skip
    assert short["tags"] == ["I-A", "I-B"]
    probability = np.exp(4) / (np.exp(4) + 4)
    assert long["entities"][0]["score"] == pytest.approx(probability, abs=1e-6)


def test_tokens_that_tokenizers_drop_or_join_have_a_tag_each(tmp_path: Path) -> None:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"我在北京上班王芳来了野家"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    # What has no piece, or one for several, is [UNK]: id 1.
    names = [f"T{number}" for number in range(len(vocabulary))]
    tagger = Tagger(Constant(len(names)).eval(), tokenizer, names, limit=6, overlap=1,
                    unit="characters", limits=BatchLimits(3))  # fmt: skip
    sentences = [[*"我在北京😀上班"], ["王", "\u200b", "芳", "来", "了"], [*"𠮷野家"],
                 ["\ufffd", "\ue000", "😀😀😀", "\u200d", "家"], ["\u200b"],
                 ["\u3000", "王"]]  # fmt: skip
    answers = predict(tagger, sentences).answers
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    for sentence, answer in zip(sentences, answers, strict=True):
        assert answer["tagged_tokens"] == sentence
        assert answer["tags"] == [f"T{ids.get(token, 1)}" for token in sentence]


@pytest.mark.parametrize(
    ("labels", "tags", "expected"),
    [
        (["O", "NOUN", "VERB"], ["NOUN", "NOUN", "O", "VERB"], [("NOUN", 0, 2), ("VERB", 3, 4)]),
        (["O", "S-X", "B-X", "E-X", "I-X"], ["S-X", "B-X", "E-X", "O"],
         [("X", 0, 1), ("X", 1, 3)]),
        (["O", "I-X", "I-Y"], ["I-X", "I-X", "I-Y", "O"], [("X", 0, 2), ("Y", 2, 3)]),
    ],
)  # fmt: skip
def test_other_schemes(
    tagger: Path, labels: list[str], tags: list[str], expected: list[tuple[str, int, int]]
) -> None:
    from toolkit.data.tag_schemes import scheme_of_labels
    from toolkit.prediction.tagging import Token

    model: Any = open_model(str(tagger))
    model.scheme = scheme_of_labels(labels)
    tokens = [Token(n, n + 1, [5]) for n in range(4)]
    answer = model._answer("今天很好", tokens, tags, [1.0] * 4)
    assert [(e["type"], e["start"], e["end"]) for e in answer["entities"]] == expected


def test_the_command_writes_entities(
    toolkit_command: Callable[..., Finished], tagger: Path, tmp_path: Path
) -> None:
    file, output = tmp_path / "in.csv", tmp_path / "out.csv"
    file.write_text('id,tokens\n1,"[""酒"", ""店""]"\n2,今天\n', encoding="utf-8")
    done = toolkit_command("predict", tagger, "--file", file, "--output", output)
    assert done.status == 0, done.err
    import csv

    with output.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["id", "tokens", "entities", "tagged_tokens", "tags"]
    assert json.loads(rows[0]["tagged_tokens"]) == ["酒", "店"]
    assert len(json.loads(rows[1]["tags"])) == 2
    assert toolkit_command("predict", tagger, "今天酒店").status == 0
