"""BERT's pretraining data: pairs and masks against their definition and exact statistics."""

import copy
import math

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from tokenizers.processors import RobertaProcessing

from toolkit.batching import Rows, load_batches
from toolkit.data.pretraining import (
    PretrainingCollator,
    tokenize_documents,
    truncate_pair,
)
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.errors import UserError

CHARACTERS = [chr(code) for code in range(0x4E00, 0x4E00 + 400)]
# Every document has characters of its own, so that a token tells where it comes from.
TEXTS = [
    "".join(CHARACTERS[8 * n : 8 * n + 3])
    + "。"
    + "".join(CHARACTERS[8 * n + 3 : 8 * n + 8])
    + "！"
    for n in range(50)
]
SPECIAL = 5


@pytest.fixture(scope="module")
def tokenizer():
    return train_wordpiece(TEXTS, 600)


@pytest.fixture(scope="module")
def documents(tokenizer):
    return tokenize_documents(TEXTS, tokenizer, 64)


def rows(documents, indices, epoch=0):
    return [{**documents[i], "index": i, "epoch": epoch} for i in indices]


def unmasked(batch):
    return torch.where(batch["labels"] >= 0, batch["labels"], batch["input_ids"])


def collate_many(tokenizer, documents, epochs, **options):
    collate = PretrainingCollator(tokenizer, documents, 64, **options)
    return [collate(rows(documents, range(len(documents)), epoch)) for epoch in range(epochs)]


def test_documents_hold_the_ids_of_their_sentences(tokenizer, documents):
    assert documents.column_names == ["sentences", "length", "text"]
    assert documents[3]["sentences"] == [
        tokenizer(part, add_special_tokens=False)["input_ids"]
        for part in (TEXTS[3][:4], TEXTS[3][4:])
    ]
    assert documents[3]["length"] == len(TEXTS[3]) + 3
    assert tokenize_documents(TEXTS, tokenizer, 8)[3]["length"] == 8


def test_one_sentence_is_taken_apart_at_commas_and_shorter_texts_are_left_out(tokenizer, capsys):
    texts = [f"{TEXTS[0][:3]}，{TEXTS[0][4:6]}", TEXTS[1], TEXTS[2][:3]]
    documents = tokenize_documents(texts, tokenizer, 64)
    assert [len(sentences) for sentences in documents["sentences"]] == [2, 2]
    assert tokenize_documents(texts[::-1], tokenizer, 64)["text"][:] == [1, 2]
    assert "1 texts of one sentence left out" in capsys.readouterr().err
    with pytest.raises(UserError, match="two or more sentences; 1 of 1"):
        tokenize_documents(texts[:1], tokenizer, 64)


def test_half_of_the_pairs_are_followed_by_their_own_rest(tokenizer, documents):
    labels = []
    for batch in collate_many(tokenizer, documents, 40):
        for row, (ids, types, label) in enumerate(
            zip(unmasked(batch), batch["token_type_ids"], batch["next_sentence_label"], strict=True)
        ):
            first, second = documents[row]["sentences"]
            second_ids = ids[types == 1].tolist()[:-1]
            assert ids.tolist()[1 : len(first) + 1] == first
            assert (second_ids == second) == (label == 0)
            if label == 1:
                assert second_ids in [d[1] for d in documents["sentences"]]
            labels.append(int(label))
    assert binomtest(sum(labels), len(labels), 0.5).pvalue > 1e-3


def test_layout_is_the_tokenizers_own_for_a_pair(tokenizer, documents):
    batch = PretrainingCollator(tokenizer, documents, 64)(rows(documents, range(20)))
    own = batch["next_sentence_label"] == 0
    assert own.any()
    for row in torch.nonzero(own).flatten().tolist():
        expected = tokenizer(TEXTS[row][:4], TEXTS[row][4:])
        length = len(expected["input_ids"])
        assert unmasked(batch)[row, :length].tolist() == expected["input_ids"]
        assert batch["token_type_ids"][row, :length].tolist() == expected["token_type_ids"]
        assert batch["attention_mask"][row].sum() == length


def test_fifteen_percent_are_predicted_eighty_ten_ten(tokenizer, documents):
    mask, kept, random, chosen = 0, 0, 0, 0
    for batch in collate_many(tokenizer, documents, 60):
        predicted = batch["labels"] >= 0
        original, given = batch["labels"][predicted], batch["input_ids"][predicted]
        assert (original >= SPECIAL).all()  # never [CLS], [SEP] or padding
        ordinary = given != tokenizer.mask_token_id
        assert (given[ordinary] >= SPECIAL).all()
        # The share is exact, up to rounding, in every row: BERT's way, not a coin per token.
        counts = predicted.sum(1)
        tokens = batch["attention_mask"].sum(1) - 3
        assert counts.tolist() == [max(1, round(0.15 * n)) for n in tokens.tolist()]
        chosen += len(given)
        mask += int((~ordinary).sum())
        kept += int((given == original).sum())
        random += int((ordinary & (given != original)).sum())
    for count, share in ((mask, 0.8), (random, 0.1), (kept, 0.1)):
        assert binomtest(count, chosen, share).pvalue > 1e-3


def test_random_tokens_come_from_the_whole_vocabulary(tokenizer, documents):
    seen = set()
    for batch in collate_many(tokenizer, documents, 60):
        changed = (batch["labels"] >= 0) & (batch["input_ids"] != batch["labels"])
        given = batch["input_ids"][changed & (batch["input_ids"] != tokenizer.mask_token_id)]
        seen |= set(given.tolist())
    assert len(seen) > len(tokenizer) / 2


def test_masks_depend_on_seed_epoch_and_row_only(tokenizer, documents):
    together = PretrainingCollator(tokenizer, documents, 64)(rows(documents, range(10)))
    collate = PretrainingCollator(tokenizer, documents, 64)
    for row in (9, 0, 4):  # alone, in another order, by another collator
        alone = collate(rows(documents, [row]))
        length = int(alone["attention_mask"].sum())
        for name in ("input_ids", "labels", "token_type_ids"):
            assert together[name][row, :length].tolist() == alone[name][0].tolist()
    later = collate(rows(documents, range(10), epoch=1))
    other = PretrainingCollator(tokenizer, documents, 64, seed=1)(rows(documents, range(10)))
    for changed in (later, other):
        assert changed["labels"].tolist() != together["labels"].tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader_workers_change_nothing(tokenizer, documents, workers):
    collate = PretrainingCollator(tokenizer, documents, 64, seed=5)
    batches = [np.array([3, 1]), np.array([7])]
    loaded = list(load_batches(Rows(documents, epoch=2), batches, collate, workers))
    direct = [collate(rows(documents, batch.tolist(), epoch=2)) for batch in batches]
    for ours, expected in zip(loaded, direct, strict=True):
        assert ours.keys() == expected.keys()
        assert all(torch.equal(ours[name], expected[name]) for name in expected)
    assert loaded[0]["index"].tolist() == [3, 1]


def test_long_pairs_are_cut_to_the_limit_and_left_padding_keeps_labels_in_place(
    tokenizer, documents
):
    collate = PretrainingCollator(tokenizer, documents, 10)
    assert collate(rows(documents, range(20)))["input_ids"].shape == (20, 10)
    right = PretrainingCollator(tokenizer, documents, 64)(rows(documents, range(20)))
    tokenizer.padding_side = "left"
    try:
        left = PretrainingCollator(tokenizer, documents, 64)(rows(documents, range(20)))
    finally:
        tokenizer.padding_side = "right"
    for name in ("input_ids", "labels"):
        real = right["attention_mask"].bool()
        assert left[name][left["attention_mask"].bool()].equal(right[name][real])
    assert (left["labels"][~left["attention_mask"].bool()] == -100).all()


def test_truncation_takes_from_the_longer_at_both_ends():
    rng = np.random.default_rng(0)
    first, second = list(range(100)), list(range(100, 110))
    cut_first, cut_second = truncate_pair(first, second, 50, rng)
    assert cut_second == second
    assert len(cut_first) == 40
    assert cut_first == list(range(cut_first[0], cut_first[0] + 40))
    assert 0 < cut_first[0] < 60
    assert len(first) == 100  # the caller's list is untouched


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 15, math.nan])
def test_a_mask_share_that_is_none_is_refused(tokenizer, documents, share):
    with pytest.raises(UserError, match=rf"--mask_share {share}: expected a share"):
        PretrainingCollator(tokenizer, documents, 64, mask_share=share)


def test_another_share_is_kept_in_every_row(tokenizer, documents):
    (batch,) = collate_many(tokenizer, documents, 1, mask_share=0.5)
    tokens = batch["attention_mask"].sum(1) - 3
    assert (batch["labels"] >= 0).sum(1).tolist() == [round(0.5 * n) for n in tokens.tolist()]


def test_the_shortest_pair_has_a_token_on_each_side(tokenizer, documents):
    with pytest.raises(UserError, match=r"length of 4 tokens leaves no room .* 3 are special"):
        PretrainingCollator(tokenizer, documents, 4)
    batch = PretrainingCollator(tokenizer, documents, 5)(rows(documents, range(20)))
    assert batch["input_ids"].shape == (20, 5)
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 1, 1]] * 20


@pytest.mark.parametrize("token", ["mask_token", "pad_token"])
def test_a_tokenizer_that_cannot_mask_or_pad_is_refused(tokenizer, documents, token):
    other = copy.deepcopy(tokenizer)
    setattr(other, token, None)
    with pytest.raises(UserError, match=f"has no {token}"):
        PretrainingCollator(other, documents, 64)


def test_another_layout_than_berts_is_kept_in_length_and_masks(tokenizer, documents):
    """RoBERTa's, with two separators between the texts."""
    other = copy.deepcopy(tokenizer)
    ends = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[SEP]", "[CLS]")]
    other.backend_tokenizer.post_processor = RobertaProcessing(*ends)
    assert tokenize_documents(TEXTS, other, 64)[3]["length"] == len(TEXTS[3]) + 4
    with pytest.raises(UserError, match="4 are special tokens"):
        PretrainingCollator(other, documents, 5)
    collate = PretrainingCollator(other, documents, 64, mask_share=0.99)
    batch = collate(rows(documents, range(20)))
    own = torch.nonzero(batch["next_sentence_label"] == 0).flatten().tolist()
    assert own
    for row in own:
        expected = other(TEXTS[row][:4], TEXTS[row][4:])["input_ids"]
        assert unmasked(batch)[row, : len(expected)].tolist() == expected
        assert batch["token_type_ids"][row, : len(expected)].tolist() == [0] * 7 + [1] * 7
    assert (batch["labels"][batch["labels"] >= 0] >= SPECIAL).all()
    assert (batch["labels"] >= 0).sum(1).tolist() == [10] * 20
    cut = PretrainingCollator(other, documents, 9)(rows(documents, [0]))
    assert cut["input_ids"].shape == (1, 9)
