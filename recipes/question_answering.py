"""Find the answer to a question in a text, or that it has none.

Offline, minutes on a laptop: accelerate launch recipes/question_answering.py --preset demo
CMRC2018: accelerate launch recipes/question_answering.py --preset cmrc2018
Your own questions, in SQuAD's form: accelerate launch recipes/question_answering.py --dataset FILE
"""

from dataclasses import dataclass, field
from typing import Literal

from toolkit.adapters import LoraSettings, add_lora, merge, save_adapter
from toolkit.config import Invocation, RunConfig
from toolkit.data.answer_windows import AnswerCollator, tokenize_questions
from toolkit.data.question_config import QuestionDataConfig
from toolkit.data.tokenization import input_limit
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.engine import fit
from toolkit.entry import run_recipe
from toolkit.freezing import freeze_encoder
from toolkit.modeling import BertShape, freeze_lowest, load_pretrained, load_tokenizer, new_bert
from toolkit.outcome import describe_model, save_model
from toolkit.question_answering import (
    AnswerExtraction,
    AnswerMetric,
    AnswerTexts,
    finish_question_answering,
)
from toolkit.run import start_run


@dataclass
class Config(QuestionDataConfig, RunConfig):
    """What to train on what."""

    model: str = "google-bert/bert-base-chinese"
    """Hub name, model folder, or demo:chinese-bert; not used by --method from_scratch."""
    implementation: Literal["scratch", "hf"] = "scratch"
    """Our own classes, or HuggingFace's: the same results, another speed."""
    max_length: int = 384
    """Tokens the model reads at once, question included; longer texts are read in windows."""
    overlap: int = 128
    """Tokens of the text that neighbouring windows share."""
    max_question: int = 64
    """Longer questions are cut to this many tokens."""
    max_answer: int = 64
    """Longest answer in tokens."""
    method: Literal["full", "lora", "frozen", "from_scratch"] = "full"
    """Train all weights; train LoRA updates; train the head alone; or train a small BERT from
    random weights, its vocabulary from the training texts."""
    dropout: float | None = None
    """Dropout of a pretrained model's hidden states and attention; null: its own."""
    freeze_layers: int | None = None
    """For --method full: leave the embeddings and the lowest so many layers as they are."""
    lora: LoraSettings = field(default_factory=LoraSettings)
    """For --method lora."""
    shape: BertShape = field(default_factory=BertShape)
    """For --method from_scratch."""
    allow_missing_weights: bool = False
    """Go on when a checkpoint lacks weights that are not the task's own."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "question_answering")
    config = run.config
    data = config.load_data()

    head = "question-answering"
    new_modules: list[str] = []
    if config.method == "from_scratch":
        name = "small BERT"
        texts = [*dict.fromkeys(data.train["context"]), *data.train["question"]]
        tokenizer = train_wordpiece(texts, config.shape.vocabulary)
        model = new_bert(config.shape, tokenizer, head, config.implementation)
    else:
        name = config.model
        tokenizer = load_tokenizer(name)
        model, new_modules = load_pretrained(
            name, head, implementation=config.implementation, dropout=config.dropout,
            allow_missing_weights=config.allow_missing_weights,
        )  # fmt: skip
    if config.method == "frozen":
        freeze_encoder(model)
    elif config.method == "lora":
        model = add_lora(model, config.lora, new_modules)
    elif config.method == "full" and config.freeze_layers is not None:
        freeze_lowest(model, config.freeze_layers)
    described = describe_model(model, name, config.implementation, config.method)

    limit = input_limit(config.max_length, tokenizer, model.config)
    data, windows = tokenize_questions(
        data, tokenizer, limit, overlap=config.overlap, max_question=config.max_question
    )
    objective, collate = AnswerExtraction(config.max_answer), AnswerCollator(tokenizer)
    # Training sees windows; what counts is the best answer over all windows of a question.
    texts_of_answers = AnswerTexts(data.validation, windows.validation)
    metric = AnswerMetric(data.validation, texts_of_answers, data.language)
    result = fit(run, model, windows, objective=objective, collate=collate, metric=metric)

    trained = result.model
    if config.method == "lora":
        save_adapter(run, trained, tokenizer)
        trained = merge(trained)
    save_model(run, trained, tokenizer)
    finish_question_answering(
        run, result, data, windows, objective=objective, metric=metric, collate=collate,
        title=config.title or f"{name}, {config.method}", model=described,
    )  # fmt: skip


if __name__ == "__main__":
    run_recipe(main, Config, __file__)
