"""Reports of image runs speak of images, their speed and their time to an accuracy."""

import io
import json
import re

import numpy as np
import pytest
import yaml
from rich.console import Console

from toolkit.compare import compare_runs
from toolkit.errors import UserError
from toolkit.report import as_document, build_report, print_comparison, render_markdown

N = 200
LABELS = np.array([0, 1] * (N // 2))
PLACES = [f"photos/class_{row % 2}/{row}.png" for row in range(N)]
LEVELS = ("0.5", "0.8", "0.9", "0.985")
MACHINE = {"processor": "one", "gpus": []}


@pytest.fixture
def image_run(make_run):
    """`image_run(title, wrong, seconds, **changes)`: wrong answers come first."""

    def make(title, wrong, seconds, environment=MACHINE, max_seconds=None, **changes):
        predictions = np.where(np.arange(N) < wrong, 1 - LABELS, LABELS)
        training = {
            "tokens_per_second": None,
            "examples_per_second": 1234.5,
            "seconds_to_accuracy": dict(zip(LEVELS, seconds, strict=True)) if seconds else None,
        }
        summary = {
            "task": "image-classification",
            "training": training,
            "environment": environment,
            **changes,
        }
        run = make_run(title, LABELS, predictions, summary, text=None, image=PLACES)
        settings = {"seed": 42, "train": {"epochs": 3, "max_seconds": max_seconds}}
        (run / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        return run

    return make


def reported(*runs):
    comparison = compare_runs(runs, draws=50)
    report = build_report(comparison)
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    print_comparison(comparison, console)
    return render_markdown(report), as_document(report), console.file.getvalue()


def test_images_are_called_images(image_run):
    markdown, document, terminal = reported(
        image_run("ResNet", 10, None), image_run("ViT", 30, None)
    )
    assert "| training time | images/s | p against" in markdown
    assert "1,234" in markdown
    assert "(images/s)" in terminal
    assert "(1,234)" in terminal
    for written in (markdown, json.dumps(document), terminal):
        assert not re.search(r"\btexts?\b(?!\.md)|tokens/s|tokenisation|TF-IDF", written)
    assert "features of the training images" in markdown
    assert "reading the image files" in markdown
    assert document["test_set"]["kind"] == "images"
    shown = document["examples"]["examples"]
    assert len(shown) == 5
    for number, example in enumerate(shown, start=1):
        row = int(example["id"].removeprefix("id-"))
        assert example["image"] == PLACES[row]
        place = PLACES[row].replace("_", r"\_")
        label = ["negative", "positive"][LABELS[row]]
        assert f"\n{number}. {place}; truth: **{label}**\n" in markdown
    assert "shortened" not in markdown
    assert "Time to accuracy" not in markdown
    assert document["time_to_accuracy"] is None


def test_images_can_be_left_out(image_run, make_run):
    comparison = compare_runs([image_run("A", 1, None), image_run("B", 2, None)], draws=50)
    written = render_markdown(build_report(comparison, show_examples=False))
    assert "The test images are left out of this report on request." in written
    assert "photos/" not in written


def test_texts_are_still_texts(make_run):
    runs = [make_run(name, LABELS, LABELS) for name in "AB"]
    markdown, document, terminal = reported(*runs)
    assert "| tokens/s |" in markdown
    assert "(tokens/s)" in terminal
    assert document["test_set"]["kind"] == "texts"
    assert "text" in document["examples"]["examples"][0]
    assert "image" not in markdown


def test_the_time_to_every_accuracy_that_was_reached(image_run):
    # ViT is the less accurate: the second row, whatever the order it is given in.
    markdown, document, terminal = reported(
        image_run("ViT", 30, (2.25, 40.0, 3700.0, None)),
        image_run("ResNet", 10, (8, 9, None, None)),
    )
    table = markdown.split("## Time to accuracy\n")[1].split("\n\n*")[0]
    assert [line for line in table.splitlines() if line] == [
        "| accuracy on validation | ResNet | ViT |",
        "|--:|--:|--:|",
        "| 50% | 8.0 s | 2.2 s |",
        "| 80% | 9.0 s | 40 s |",
        "| 90% | – | 1 h 2 min |",
    ]
    assert document["time_to_accuracy"] == {
        "0.5": {"ResNet": 8, "ViT": 2.25},
        "0.8": {"ResNet": 9, "ViT": 40.0},
        "0.9": {"ResNet": None, "ViT": 3700.0},
    }
    assert "98.5%" not in terminal
    assert re.search(r"ViT +2.2 s +40 s +1 h 2 min", terminal)


def test_a_run_that_recorded_no_times_shows_none(image_run):
    markdown, _, _ = reported(image_run("tuned", 10, (1, 2, 3, 4)), image_run("frozen", 30, None))
    assert "| 98.5% | 4.0 s | – |" in markdown


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"environment": MACHINE | {"processor": "another"}}, "on different hardware, precision"),
        ({"environment": MACHINE | {"threads": 8}}, "on different hardware, precision"),
        ({"data": {"hashes": {"validation": "f" * 64}}}, "with different validation examples"),
    ],
)
def test_times_that_cannot_be_compared_are_not_shown(image_run, changes, why):
    markdown, document, terminal = reported(
        image_run("A", 10, (1, 2, 3, 4)), image_run("B", 30, (5, 6, 7, 8), **changes)
    )
    expected = f"The runs were trained {why}"
    assert expected in markdown.split("## Time to accuracy\n")[1].split("\n## ")[0]
    assert "| 50% |" not in markdown
    assert document["time_to_accuracy"]["left_out"].startswith(expected)
    assert "50%" not in terminal


def test_no_level_was_reached(image_run):
    nothing = (None,) * 4
    markdown, _, _ = reported(image_run("A", 10, nothing), image_run("B", 30, nothing))
    assert "No run reached an accuracy of 50% on validation." in markdown


def test_the_same_budget_of_time_is_stated(image_run):
    runs = [image_run(name, wrong, None, max_seconds=600.0) for name, wrong in (("A", 1), ("B", 2))]
    markdown, document, _ = reported(*runs)
    stated = "- All runs had the same budget of 600 seconds of training (evaluations do not count)"
    assert stated in markdown.split("## What was compared\n")[1].split("\n## ")[0]
    assert [run["max_seconds"] for run in document["runs"]] == [600.0, 600.0]
    assert not document["comparability"]["cautions"]


def test_other_budgets_are_a_caution(image_run):
    budgets = {"A": 600.0, "B": 60.5, "C": None}
    runs = [
        image_run(name, wrong, None, max_seconds=seconds)
        for wrong, (name, seconds) in enumerate(budgets.items())
    ]
    markdown, document, _ = reported(*runs)
    assert "budgets of training time: A 600 s, B 60.5 s, C none." in markdown
    assert "same budget" not in markdown
    assert [run["max_seconds"] for run in document["runs"]] == [600.0, 60.5, None]


def test_the_same_budget_on_other_machines_is_a_caution(image_run):
    runs = [
        image_run("A", 1, None, max_seconds=60.0),
        image_run("B", 2, None, max_seconds=60.0, environment={"processor": "another"}),
    ]
    assert "but not what their machines do in it" in reported(*runs)[0]


def test_runs_without_a_budget_say_nothing_of_one(image_run):
    assert "budget" not in reported(image_run("A", 1, None), image_run("B", 2, None))[0]


def test_a_broken_config_is_named(image_run):
    run = image_run("A", 1, None)
    (run / "config.yaml").write_text("train: [", encoding="utf-8")
    with pytest.raises(UserError, match=r"config\.yaml is not valid YAML"):
        compare_runs([run, image_run("B", 2, None)])


def test_texts_and_images_have_no_common_measure(image_run, make_run):
    with pytest.raises(UserError, match="no common measure"):
        compare_runs([image_run("A", 1, None), make_run("B", LABELS, LABELS)], force=True)
