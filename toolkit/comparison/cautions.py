"""What a reader of a comparison must mind although it is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.comparison.differences import SEEDS_TO_TEST
from toolkit.comparison.methods import Method, are_twins
from toolkit.comparison.pairs import answers_alike
from toolkit.comparison.saved_run import SavedRun
from toolkit.comparison.training_log import TrainingLog
from toolkit.task_scores.view import TaskView

# What must be equal before two training times may be ranked.
_MACHINE = ("device", "processor", "gpus", "threads", "precision", "processes")


def cautions_about(methods: Sequence[Method], view: TaskView) -> list[str]:
    """Sentences about speed, budgets, data, selection and seeds that are not alike."""
    runs = [run for method in methods for run in method.runs]
    return [
        *_outside(methods),
        *_versions(runs),
        *_speed(runs),
        *_budgets(methods),
        *_data(methods),
        *_seeds(methods, view),
        *_seeds_of_twins(methods),
        *_single_answers(methods, view),
    ]


def cautions_about_logs(
    methods: Sequence[Method], logs: Sequence[Sequence[TrainingLog]]
) -> list[str]:
    """Damage that costs points of a curve and nothing else.

    Args:
        logs: of every run, by method.
    """
    cautions = []
    for method, found in zip(methods, logs, strict=True):
        for run, log in zip(method.runs, found, strict=True):
            if lines := log.unreadable:
                more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
                cautions.append(
                    f"{run.folder / 'metrics.jsonl'}: line {lines[0]}{more} is no JSON; the curves "
                    "are drawn without."
                )
    return cautions


def _outside(methods: Sequence[Method]) -> list[str]:
    names = [method.title for method in methods if is_outside(method.runs[0])]
    if not names:
        return []
    are = "is a file" if len(names) == 1 else "are files"
    cautions = [
        f"{', '.join(names)} {are} of predictions for the same examples. On what the system was "
        "trained, how it was chosen and whether it has seen these examples is not known."
    ]
    for method in methods:
        ids = method.runs[0].section("data").get("label_ids")
        if is_outside(method.runs[0]) and ids:
            listed = ", ".join(f"{number} = {name}" for number, name in ids.items())
            cautions.append(
                f"{method.title} gives labels by number; they were read as {listed}. If its "
                "numbers mean something else, its values are wrong."
            )
    return cautions


def _versions(runs: Sequence[SavedRun]) -> list[str]:
    commits = {
        str(git.get("commit"))[:8] + ("+" if git.get("dirty") else "")
        for run in runs
        if isinstance(git := run.section("environment").get("git"), dict)
    }
    if len(commits) < 2:
        return []
    return [
        f"The runs were made by different versions of the code ({', '.join(sorted(commits))}; +: "
        "changed since): to repeat one, check its version out first."
    ]


def same_machine(runs: Sequence[SavedRun]) -> bool:
    """Whether the runs were trained on equal hardware and in equal precision: times may be ranked.

    Files of predictions do not count.
    """
    machines = {
        tuple(str(run.section("environment").get(key)) for key in _MACHINE)
        for run in runs
        if not is_outside(run)
    }
    return len(machines) <= 1


def same_padding(runs: Sequence[SavedRun]) -> bool:
    """Whether the batches were made in one way, where there were any: speeds may be ranked."""
    return len(_paddings(runs)) <= 1


def is_outside(run: SavedRun) -> bool:
    """Whether the run is only a file of predictions: nothing is known of its training."""
    return not run.section("environment")


def _paddings(runs: Sequence[SavedRun]) -> set[str]:
    """What is not recorded is not known to be the same; runs without a speed have none to rank."""
    speeds = ("tokens_per_second", "examples_per_second")
    trainings = [run.section("training") for run in runs]
    found = [t.get("padding") for t in trainings if any(t.get(speed) for speed in speeds)]
    return {"not recorded" if padding is None else str(padding) for padding in found} - {"none"}


def _speed(runs: Sequence[SavedRun]) -> list[str]:
    if not same_machine(runs):
        return [
            f"The runs were trained on different hardware or in another way ({_differing(runs)}): "
            "their training times and speeds must not be ranked."
        ]
    if not same_padding(runs):
        return [
            f"The methods form their batches in different ways "
            f"({', '.join(sorted(_paddings(runs)))}), so that these hold more or less padding: "
            "examples and tokens per second must not be ranked."
        ]
    return []


def _differing(runs: Sequence[SavedRun]) -> str:
    """ "threads 1 or 2; precision bf16 or fp32"."""
    parts = []
    for key in _MACHINE:
        values = {str(r.section("environment").get(key)) for r in runs if not is_outside(r)}
        if len(values) > 1:
            parts.append(f"{key} {' or '.join(sorted(values))}")
    return "; ".join(parts)


def _budgets(methods: Sequence[Method]) -> list[str]:
    runs = [run for method in methods for run in method.runs if not is_outside(run)]
    budgets = {run.max_seconds for run in runs}
    if len(budgets) > 1:
        given = [f"{method.title} {_budget(method.runs[0])}" for method in methods]
        return [f"The runs had different budgets of training time: {', '.join(given)}."]
    if budgets != {None} and not same_machine(runs):
        return ["Their budget of training time is the same, but not what their machines do in it."]
    return []


def _budget(run: SavedRun) -> str:
    return "none" if run.max_seconds is None else f"{run.max_seconds:,g} s"


def _data(methods: Sequence[Method]) -> list[str]:
    cautions = []
    for split, what in (("train", "trained on"), ("validation", "selected on")):
        groups: dict[str | None, list[str]] = {}
        for method in methods:
            if is_outside(method.runs[0]):
                continue
            groups.setdefault(method.runs[0].data_hash(split), []).append(method.title)
        if len(groups) > 1:
            listed = " | ".join(", ".join(group) for group in groups.values())
            cautions.append(f"The runs were not all {what} the same examples: {listed}.")
    return cautions


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
        give = "gives" if len(alike) == 1 else "give"
        cautions.append(
            f"{', '.join(alike)} {give} the same answers with every seed: the seeds count as one "
            "run."
        )
    return cautions


def _seeds_of_twins(methods: Sequence[Method]) -> list[str]:
    """Two implementations with other seeds each are not compared seed by seed."""
    cautions = []
    for place, ours in enumerate(methods):
        for theirs in methods[place + 1 :]:
            if {*ours.seeds} == {*theirs.seeds} or not are_twins(ours.runs[0], theirs.runs[0]):
                continue
            alone = [
                f"{method.title} has seed {', '.join(sorted(map(str, own - other)))}"
                for method, own, other in (
                    (ours, {*ours.seeds}, {*theirs.seeds}),
                    (theirs, {*theirs.seeds}, {*ours.seeds}),
                )
                if own - other
            ]
            cautions.append(
                f"{ours.title} and {theirs.title} are two implementations of one model, but "
                f"{' and '.join(alone)}, which the other lacks: their values differ by that, too. "
                "Run the missing seeds, or compare the common ones."
            )
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
