"""Find the answer to a question in a text, or that it has none.

Offline, minutes on a laptop: accelerate launch recipes/question_answering.py --preset demo
CMRC2018: accelerate launch recipes/question_answering.py --preset cmrc2018
Your own questions, in SQuAD's form: accelerate launch recipes/question_answering.py --dataset FILE
"""

from dataclasses import dataclass, field

from toolkit.config import Invocation, RunConfig
from toolkit.data.answer_windows import AnswerCollator, tokenize_questions
from toolkit.data.question_config import QuestionDataConfig
from toolkit.data.tokenization import input_limit
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.entry import run_recipe
from toolkit.fine_tuning import FineTuningConfig, Method, save_trained
from toolkit.modeling import BertShape, load_tokenizer, new_bert
from toolkit.outcome import describe_model
from toolkit.question_answering import AnswerExtraction, AnswerMetric, AnswerTexts
from toolkit.question_answering_outcome import finish_question_answering
from toolkit.run import start_run
from toolkit.training.engine import fit
from toolkit.unused_settings import say_unused


@dataclass
class Config(QuestionDataConfig, FineTuningConfig, RunConfig):
    """What to train on what."""

    model: str = "google-bert/bert-base-chinese"
    """Hub name, model folder, or demo:chinese-bert; not used by --method from_scratch."""
    max_length: int = 384
    """Tokens the model reads at once, question included; longer texts are read in windows."""
    overlap: int = 128
    """Tokens of the text that neighbouring windows share."""
    max_question: int = 64
    """Longer questions are cut to this many tokens."""
    max_answer: int = 64
    """Longest answer in tokens."""
    method: Method = "full"
    """Train all weights; train LoRA or DoRA updates; train the head alone; or train a small BERT
    from random weights, its vocabulary from the training texts."""
    shape: BertShape = field(default_factory=BertShape)
    """For --method from_scratch."""


def main(invocation: Invocation[Config]) -> None:
    """Data, model, training, result: in this order."""
    run = start_run(invocation, "question_answering")
    config = run.config
    say_unused(run, config.method)
    data = config.load_data()
    run.record_data(data.summary)

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
        model, new_modules = config.load(name, head)
    model = config.choose_trained(model, config.method, new_modules)
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

    save_trained(run, result.model, tokenizer)
    finish_question_answering(
        run, result, data, windows, objective=objective, metric=metric, collate=collate,
        title=config.title or f"{name}, {config.method}", model=described,
    )  # fmt: skip


if __name__ == "__main__":
    run_recipe(main, Config, __file__)
