"""Names of labels: written, read, given by pipelines, and made up where the number changes."""

from __future__ import annotations

import json

import torch

NAMES = {0: "负面", 1: "正面"}
NUMBERS = {name: number for number, name in NAMES.items()}


def test_names_in_any_script_are_saved_and_read(classifier, tmp_path) -> None:
    classifier.fresh(id2label=NAMES, label2id=NUMBERS).save_pretrained(tmp_path)
    text = (tmp_path / "config.json").read_text(encoding="utf-8")
    saved = json.loads(text)
    assert saved["id2label"] == {"0": "负面", "1": "正面"}
    assert saved["label2id"] == NUMBERS
    known = classifier.reference_class or classifier.own_class
    assert saved["architectures"] == [known.__name__]
    for reader in filter(None, (classifier.own_class, classifier.reference_class)):
        config = reader.from_pretrained(tmp_path).config
        assert config.id2label == NAMES
        assert config.label2id == NUMBERS
        assert config.num_labels == 2


def test_another_number_of_labels_over_a_checkpoint(classifier, tmp_path) -> None:
    stored = classifier.fresh(id2label=NAMES, label2id=NUMBERS)
    stored.save_pretrained(tmp_path)
    found = []
    for reader in filter(None, (classifier.own_class, classifier.reference_class)):
        model, info = reader.from_pretrained(
            tmp_path, num_labels=3, ignore_mismatched_sizes=True, output_loading_info=True
        )
        assert {tuple(sizes[1:]) for sizes in info["mismatched_keys"]} <= {
            (torch.Size([2]), torch.Size([3])),
            (torch.Size([2, last_width(model)]), torch.Size([3, last_width(model)])),
        }
        assert info["mismatched_keys"]
        with torch.no_grad():
            logits = model(**classifier.batch(model.config)).logits
        assert logits.shape[-1] == 3
        assert torch.isfinite(logits).all()
        found.append((model.config.id2label, model.config.label2id))
    assert found[0] == found[-1]
    assert found[0][0] == {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    kept = {name: tensor for name, tensor in stored.state_dict().items() if "embed" in name}
    again = classifier.own_class.from_pretrained(
        tmp_path, num_labels=3, ignore_mismatched_sizes=True
    ).state_dict()
    for name, tensor in kept.items():
        assert torch.equal(again[name], tensor), name


def last_width(model) -> int:
    """Inputs of the layer that makes the logits."""
    return next(p for p in reversed(list(model.parameters())) if p.ndim == 2).shape[1]


def test_given_names_win_over_those_of_the_checkpoint(classifier, tmp_path) -> None:
    classifier.fresh(id2label=NAMES, label2id=NUMBERS).save_pretrained(tmp_path)
    names = {0: "坏", 1: "中", 2: "好"}
    model = classifier.own_class.from_pretrained(
        tmp_path,
        id2label=names,
        label2id={name: number for number, name in names.items()},
        ignore_mismatched_sizes=True,
    )
    assert model.config.id2label == names
    assert model.num_labels == model.config.num_labels == 3
    model.save_pretrained(tmp_path / "again")
    assert classifier.own_class.from_pretrained(tmp_path / "again").config.id2label == names
