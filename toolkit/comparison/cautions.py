"""What a reader of a comparison must mind although it is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.comparison.methods import Method
from toolkit.comparison.pairs import SEEDS_TO_TEST, answers_alike
from toolkit.comparison.saved_run import SavedRun
from toolkit.task_scores.view import TaskView

# What must be equal before two training times may be ranked: of the environment, of the training.
_ENVIRONMENT = ("device", "processor", "gpus", "threads", "precision", "processes")
_TRAINING = ("padding",)


def cautions_about(methods: Sequence[Method], view: TaskView) -> list[str]:
    """Sentences about speed, budgets, data, selection and seeds that are not alike."""
    runs = [run for method in methods for run in method.runs]
    return [
        *_speed(runs),
        *_budgets(methods),
        *_data(methods),
        *_selection(runs),
        *_seeds(methods, view),
        *_single_answers(methods, view),
    ]


def same_speed_conditions(runs: Sequence[SavedRun]) -> bool:
    """Whether the runs were trained on equal hardware, in equal precision and padding."""
    return len({_conditions(run) for run in runs if not is_outside(run)}) <= 1


def is_outside(run: SavedRun) -> bool:
    """Whether the run is only a file of predictions: nothing is known of its training."""
    return not run.section("environment")


def _conditions(run: SavedRun) -> tuple[str, ...]:
    environment, training = run.section("environment"), run.section("training")
    return (
        *(str(environment.get(key)) for key in _ENVIRONMENT),
        *(str(training.get(key)) for key in _TRAINING if training.get(key) is not None),
    )


def _speed(runs: Sequence[SavedRun]) -> list[str]:
    if same_speed_conditions(runs):
        return []
    return [
        "The runs were trained on different hardware, precision, padding or numbers of threads or "
        "processes: their training times and speeds must not be ranked."
    ]


def _budgets(methods: Sequence[Method]) -> list[str]:
    runs = [run for method in methods for run in method.runs if not is_outside(run)]
    budgets = {run.max_seconds for run in runs}
    if len(budgets) > 1:
        given = [f"{method.title} {_budget(method.runs[0])}" for method in methods]
        return [f"The runs had different budgets of training time: {', '.join(given)}."]
    if budgets != {None} and not same_speed_conditions(runs):
        return ["Their budget of training time is the same, but not what their machines do in it."]
    return []


def _budget(run: SavedRun) -> str:
    return "none" if run.max_seconds is None else f"{run.max_seconds:,g} s"


def _data(methods: Sequence[Method]) -> list[str]:
    cautions = []
    for split, what in (("train", "trained on"), ("validation", "selected on")):
        groups: dict[str | None, list[str]] = {}
        for method in methods:
            groups.setdefault(method.runs[0].data_hash(split), []).append(method.title)
        if len(groups) > 1:
            listed = " | ".join(", ".join(group) for group in groups.values())
            cautions.append(f"The runs were not all {what} the same examples: {listed}.")
    return cautions


def _selection(runs: Sequence[SavedRun]) -> list[str]:
    rules = {str(run.section("training").get("selection")) for run in runs if not is_outside(run)}
    if len(rules) < 2:
        return []
    return [f"The runs chose their model by different rules: {'; '.join(sorted(rules))}."]


def _seeds(methods: Sequence[Method], view: TaskView) -> list[str]:
    if {len(method.runs) for method in methods} == {1}:
        return []
    cautions = []
    few = [method.title for method in methods if len(method.runs) < SEEDS_TO_TEST]
    if few:
        cautions.append(
            f"Fewer than {SEEDS_TO_TEST} seeds: {', '.join(few)}. Differences to them are tested "
            "over test examples only."
        )
    alike = [m.title for m in methods if len(m.runs) > 1 and answers_alike(m, view)]
    if alike:
        cautions.append(f"The seed changes no answer of {', '.join(alike)}.")
    return cautions


def _single_answers(methods: Sequence[Method], view: TaskView) -> list[str]:
    """Runs that learnt nothing but one answer: accuracy hides that on an imbalanced test set."""
    cautions = []
    for method in methods:
        for run, place in zip(method.runs, method.places, strict=True):
            if place in view.single_answers:
                which = "" if len(method.runs) == 1 else f" (seed {run.seed})"
                answer = view.single_answers[place]
                cautions.append(f"{method.title}{which} answers {answer!r} to every example.")
    return cautions
