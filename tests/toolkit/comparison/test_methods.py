"""Which runs are seeds of one method: same recipe, settings and data, other seeds."""

import pytest

from toolkit.comparison.methods import group_into_methods, settings
from toolkit.comparison.saved_run import load_run

LABELS = [0, 1, 1, 0]
CONFIG = {"seed": 0, "method": "full", "train": {"learning_rate": 1e-4, "epochs": 3}}


@pytest.fixture
def seeded(make_run):
    """`seeded(seed, rate, title)`: runs whose settings are `CONFIG` but for seed and rate."""

    def make(seed, rate=1e-4, title="A", **changes):
        config = CONFIG | {"seed": seed, "train": {"learning_rate": rate, "epochs": 3}}
        config |= {"run_id": f"{title}-{seed}-{rate}"}
        folder = f"{title}-{seed}-{rate}-{len(changes)}"
        summary = {"seed": seed, "run_id": folder, **changes}
        run = make_run(title, LABELS, LABELS, summary, folder, config)
        return load_run(run)

    return make


def test_seeds_of_the_same_settings_are_one_method(seeded):
    runs = [seeded(2), seeded(1, 1e-3), seeded(0), seeded(1)]
    methods, notes = group_into_methods(runs)
    assert [method.places for method in methods] == [[2, 3, 0], [1]]
    assert methods[0].seeds == [0, 1, 2]
    assert notes == []
    # Equal titles are told apart by the setting that differs.
    assert [method.title for method in methods] == [
        "A (train.learning_rate 0.0001)",
        "A (train.learning_rate 0.001)",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"data": {"hashes": {"train": "z" * 64}}},
        {"data": {"hashes": {"test": "z" * 64}}},
        {"recipe": "text_classification"},
    ],
)
def test_other_data_or_recipes_are_other_methods(seeded, changes):
    methods, _ = group_into_methods([seeded(0), seeded(1, **changes)])
    assert [method.places for method in methods] == [[0], [1]]


def test_one_seed_twice_is_no_second_seed(seeded, make_run):
    twice = make_run("A", LABELS, LABELS, {"seed": 0}, "again", CONFIG)
    methods, notes = group_into_methods([seeded(0), seeded(1), load_run(twice)])
    assert [method.places for method in methods] == [[0], [1], [2]]
    assert "same seed are shown apart" in notes[0]
    assert str(twice) in notes[0]


def test_runs_without_settings_stand_alone(make_run):
    runs = [load_run(make_run("A", LABELS, LABELS, {"seed": seed}, f"r{seed}")) for seed in (0, 1)]
    methods, _ = group_into_methods(runs)
    assert len(methods) == 2


def test_who_knows_the_methods_may_name_them(seeded):
    runs = [seeded(0), seeded(1, 1e-3), seeded(2)]
    given = {runs[0].folder.resolve(): "one", runs[1].folder.resolve(): "one"}
    methods, _ = group_into_methods(runs, given)
    assert [method.places for method in methods] == [[0, 1], [2]]


def test_settings_leave_out_what_only_names_a_run(seeded):
    found = settings(seeded(3), "seed")
    assert found == {"method": "full", "train.learning_rate": 1e-4, "train.epochs": 3}
