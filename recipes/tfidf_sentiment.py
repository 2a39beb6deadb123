"""The classic baseline: TF-IDF of character n-grams and logistic regression.

accelerate launch recipes/tfidf_sentiment.py --dataset demo:reviews
"""

from dataclasses import dataclass

import joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from toolkit.clock import start_clock
from toolkit.config import Invocation, RunConfig, check_range
from toolkit.data.config import TextDataConfig
from toolkit.data_facts import describe_data
from toolkit.dry_run import end_dry_run
from toolkit.entry import run_recipe
from toolkit.linear import describe_linear_training, fit_linear
from toolkit.outcome import Outcome, finish_classification
from toolkit.run import start_run
from toolkit.unused_settings import say_unused

# Inverse strength of the L2 penalty; the best on validation wins.
PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass
class Config(TextDataConfig, RunConfig):
    """What to train on; the settings under --train have no effect here."""

    ngrams: int = 3
    """Longest run of characters that counts as a feature; the shortest is 1."""


def build_classifier(penalty: float) -> Pipeline:
    """L2-penalised logistic regression."""
    return make_pipeline(LogisticRegression(C=penalty, max_iter=5000))


def main(invocation: Invocation[Config]) -> None:
    """Data, classifier, result."""
    run = start_run(invocation, "tfidf_sentiment")
    config = run.config
    say_unused(run, "TF-IDF", trains=False)
    check_range("ngrams", config.ngrams, 1, 20)
    data = config.load_single_texts()
    run.record_data(data.summary)
    if config.dry_run:
        end_dry_run(run, {"data": describe_data(data)})
    run.begin()

    clock = start_clock(run.accelerator)
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, config.ngrams), sublinear_tf=True)
    with clock.running():
        features = {"train": vectorizer.fit_transform(data.train["text"])}
    features["validation"] = vectorizer.transform(data.validation["text"])
    features["test"] = vectorizer.transform(data.test["text"])
    result = fit_linear(run, build_classifier, PENALTIES, features, data, clock)

    if run.accelerator.is_main_process:
        folder = run.directory / "model"
        folder.mkdir(exist_ok=True)
        joblib.dump(make_pipeline(vectorizer, *result.classifier), folder / "tfidf.joblib")
    model = {
        "name": "TF-IDF",
        "implementation": "sklearn",
        "architecture": f"TfidfVectorizer(char 1-{config.ngrams}) + LogisticRegression",
        "method": "classic",
        "parameters_total": result.parameters,
        "parameters_trained": result.parameters,
    }
    training = describe_linear_training(
        result, PENALTIES, clock, rows=len(data.train), tokens=None, padding="none"
    )
    title = config.title or "TF-IDF + logistic regression"
    finish_classification(run, data, Outcome(title, model, training, result.scores))


if __name__ == "__main__":
    run_recipe(main, Config, __file__)
