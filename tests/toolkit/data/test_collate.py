"""Batches hold what a model takes, and nothing it would misread."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import AutoTokenizer, RobertaConfig, RobertaModel

from toolkit.data.collate import ClassificationCollator


def test_a_roberta_counts_its_positions_itself(write_tiny_bert, tmp_path: Path) -> None:
    """Positions from 0, as BERT's are, would be taken without a word and give worse vectors."""
    folder = write_tiny_bert(tmp_path / "bert")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = ["好棒", "坏差烂糟"]
    rows = [{"input_ids": tokenizer(text)["input_ids"]} for text in texts]
    batch = ClassificationCollator(tokenizer)(rows)
    assert "position_ids" not in batch
    roberta = RobertaModel(
        RobertaConfig(
            vocab_size=config["vocab_size"], hidden_size=16, num_hidden_layers=1,
            num_attention_heads=2, intermediate_size=16, max_position_embeddings=32,
            pad_token_id=tokenizer.pad_token_id, initializer_range=0.3,
        )
    ).eval()  # fmt: skip
    together = roberta(**batch).last_hidden_state
    for row, example in enumerate(rows):
        alone = roberta(torch.tensor([example["input_ids"]])).last_hidden_state[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=0)
