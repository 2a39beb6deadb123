"""Read and tokenise many short reviews, and say how long it took and how much memory.

    python tests/toolkit/data/large_data.py 1000000 FOLDER

writes FOLDER/reviews.csv and a tokenizer where they are missing, prepares the reviews as
recipes/bert_sentiment.py does, and prints one line of JSON. XDG_CACHE_HOME says where the result
is kept: the second time it is found there.
"""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

CHARACTERS = [chr(0x4E00 + i) for i in range(3000)]


def write_reviews(path: Path, rows: int) -> None:
    """Reviews of 5 to 60 characters in two classes, mostly unlike one another."""
    generator = random.Random(0)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for row in range(rows):
            text = "".join(generator.choices(CHARACTERS, k=generator.randint(5, 60)))
            writer.writerow([text + "，好" * (row % 3 > 0), row % 2])


def write_tokenizer(folder: Path) -> None:
    """A BERT tokenizer with a vocabulary as large as bert-base-chinese's."""
    folder.mkdir()
    characters = [chr(0x4E00 + i) for i in range(20_900)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "，", *characters]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", "utf-8")
    (folder / "config.json").write_text('{"model_type": "bert"}')


def prepare(reviews: Path, tokenizer_folder: Path) -> dict[str, Any]:
    """Seconds of reading and of tokenising, CPU seconds, and the largest resident set in GB."""
    from transformers import AutoTokenizer

    from toolkit.data.text_classification import load_text_classification, tokenize

    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    start, busy = time.perf_counter(), time.process_time()
    data = load_text_classification(str(reviews))
    read = time.perf_counter()
    data = tokenize(data, tokenizer, 128)
    done, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    return {
        "sizes": data.summary["sizes"],
        "sha256": data.summary["sha256"],
        "tokens": data.summary["tokenization"]["splits"]["train"]["tokens"],
        "reading_seconds": round(read - start, 1),
        "tokenising_seconds": round(done - read, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
        "peak_gb": round(used.ru_maxrss * 1024 / 1e9, 2),
    }


def main(rows: int, folder: Path) -> None:
    """Write what is missing, prepare, print."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # as recipes do
    if not (folder / "reviews.csv").exists():
        write_reviews(folder / "reviews.csv", rows)
        write_tokenizer(folder / "tokenizer")
    print(json.dumps(prepare(folder / "reviews.csv", folder / "tokenizer")))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
