"""Reports of image runs speak of images, their speed and their budget of time."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from toolkit.comparison.compare import compare_runs
from toolkit.errors import UserError
from toolkit.report import as_blocks, as_json, build_report, print_report
from toolkit.report.markdown_blocks import render_markdown

N = 200
LABELS = np.array([0, 1] * (N // 2))
PLACES = [f"photos/class_{row % 2}/{row}.png" for row in range(N)]
MACHINE = {"processor": "one", "gpus": []}


@pytest.fixture
def image_run(make_run):
    """`image_run(title, wrong, **changes)`: wrong answers come first."""

    def make(title, wrong, environment=MACHINE, max_seconds=None, **changes):
        predictions = np.where(np.arange(N) < wrong, 1 - LABELS, LABELS)
        training = {"tokens_per_second": None, "examples_per_second": 1234.5}
        summary = {
            "task": "image-classification",
            "training": training,
            "environment": environment,
            **changes,
        }
        settings = {"model": title, "train": {"epochs": 3, "max_seconds": max_seconds}}
        return make_run(
            title, LABELS, predictions, summary, config=settings, text=None, image=PLACES
        )

    return make


def reported(*runs):
    comparison = compare_runs(runs, draws=50)
    report = build_report(comparison)
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    print_report(report, console)
    return render_markdown(as_blocks(report)), as_json(report), console.file.getvalue()


def test_images_are_called_images(image_run):
    markdown, document, terminal = reported(image_run("ResNet", 10), image_run("ViT", 30))
    assert "| training time | examples/s |" in markdown
    assert "1,234" in markdown
    assert "(examples/s)" in terminal
    assert "(1,234)" in terminal
    assert "Number of images." in markdown
    for written in (markdown, terminal):
        assert not re.search(r"\btexts?\b|tokens/s", written)
    assert document["test_set"]["kind"] == "images"
    for group in document["examples"]:
        for example in group["examples"]:
            assert example["shown"] == PLACES[int(example["id"].removeprefix("id-"))]
    assert "shortened" not in markdown


def test_images_can_be_left_out(image_run, make_run):
    comparison = compare_runs([image_run("A", 1), image_run("B", 2)], draws=50)
    written = render_markdown(as_blocks(build_report(comparison, show_examples=False)))
    assert "The test images are left out of this report on request." in written
    assert "photos/" not in written


def test_texts_are_still_texts(make_run):
    markdown, document, terminal = reported(*(make_run(name, LABELS, LABELS) for name in "AB"))
    assert "| tokens/s |" in markdown
    assert "(tokens/s)" in terminal
    assert document["test_set"]["kind"] == "texts"
    assert "image" not in markdown


def test_the_same_budget_of_time_is_stated(image_run):
    runs = [image_run(name, wrong, max_seconds=600.0) for name, wrong in (("A", 1), ("B", 2))]
    markdown, document, _ = reported(*runs)
    stated = "- All runs had the same budget of 600 seconds of training (evaluations do not count)"
    assert stated in markdown.split("## What was compared\n")[1].split("\n## ")[0]
    assert [method["runs"][0]["max_seconds"] for method in document["methods"]] == [600.0, 600.0]
    assert not document["comparability"]["cautions"]


def test_other_budgets_are_a_caution(image_run):
    budgets = {"A": 600.0, "B": 60.5, "C": None}
    runs = [
        image_run(name, wrong, max_seconds=seconds)
        for wrong, (name, seconds) in enumerate(budgets.items())
    ]
    markdown, document, _ = reported(*runs)
    assert "budgets of training time: A 600 s, B 60.5 s, C none." in markdown
    assert "same budget" not in markdown
    assert [method["runs"][0]["max_seconds"] for method in document["methods"]] == [
        600.0,
        60.5,
        None,
    ]


def test_the_same_budget_on_other_machines_is_a_caution(image_run):
    runs = [
        image_run("A", 1, max_seconds=60.0),
        image_run("B", 2, max_seconds=60.0, environment={"processor": "another"}),
    ]
    assert "but not what their machines do in it" in reported(*runs)[0]


def test_runs_without_a_budget_say_nothing_of_one(image_run):
    assert "budget" not in reported(image_run("A", 1), image_run("B", 2))[0]


def test_a_broken_config_is_named(image_run):
    run = image_run("A", 1)
    (run / "config.yaml").write_text("train: [", encoding="utf-8")
    with pytest.raises(UserError, match=r"config\.yaml is not valid YAML"):
        compare_runs([run, image_run("B", 2)])


def test_texts_and_images_have_no_common_measure(image_run, make_run):
    with pytest.raises(UserError, match="no common measure"):
        compare_runs([image_run("A", 1), make_run("B", LABELS, LABELS)], force=True)
