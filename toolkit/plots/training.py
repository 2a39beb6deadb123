"""Pictures of one training: loss and validation, and the loss against the learning rate."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from toolkit.plots.style import COLOURS, GREY, WIDTH, arranged, new_figure, style


def training_curves(
    loss: Sequence[tuple[float, float]],
    validation: Sequence[tuple[float, float]] = (),
    validation_name: str = "validation accuracy",
    best_step: float | None = None,
) -> Figure:
    """Training loss above, a validation metric below, both against the optimizer step.

    `loss` and `validation` are (step, value) pairs in order of step; values that are not finite
    leave a gap. `best_step` marks the step whose weights were kept.
    """
    with style():
        panels = 2 if validation else 1
        figure = Figure(figsize=(WIDTH, 1.0 + 1.8 * panels), dpi=72, layout="constrained")
        axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
        _draw_steps(axes[0], loss, COLOURS[0], marker="")
        axes[0].set_ylabel("training loss")
        if validation:
            _draw_steps(axes[1], validation, COLOURS[1], marker="o")
            axes[1].set_ylabel(validation_name)
        if best_step is not None:
            for panel in axes:
                panel.axvline(best_step, color="#777777", linestyle=":", linewidth=1.2)
            axes[0].annotate(
                "kept",
                (best_step, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(-3, -2),
                textcoords="offset points",
                ha="right",
                va="top",
                color=GREY,
            )
        axes[-1].set_xlabel("optimizer step")
        axes[-1].xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        return arranged(figure)


def learning_rate_curve(
    points: Sequence[tuple[float, float]],
    line: Sequence[tuple[float, float]],
    suggestion: float | None = None,
) -> Figure:
    """Loss against the learning rate (log scale): single steps, their smoothed line, a mark."""
    with style():
        figure, axes = new_figure(height=2.8)
        axes.plot(*zip(*points, strict=True), ".", color=COLOURS[4], markersize=4)
        axes.plot(*zip(*line, strict=True), color=COLOURS[0], linewidth=1.8)
        axes.set_xscale("log")
        smoothed = [loss for _, loss in line]
        span = max(smoothed[0], min(smoothed) + 1e-9) - min(smoothed)
        axes.set_ylim(min(smoothed) - 0.3 * span, smoothed[0] + 0.7 * span)  # the fall, not the end
        if suggestion is not None:
            axes.axvline(suggestion, color="#777777", linestyle=":", linewidth=1.2)
            axes.annotate(
                f" {suggestion:g}",
                (suggestion, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, -2),
                textcoords="offset points",
                va="top",
                color=GREY,
            )
        axes.set_xlabel("learning rate")
        axes.set_ylabel("training loss")
        return arranged(figure)


def _draw_steps(axes: Axes, pairs: Sequence[tuple[float, float]], colour: str, marker: str) -> None:
    steps, values = [step for step, _ in pairs], [value for _, value in pairs]
    axes.plot(steps, values, color=colour, marker=marker, markersize=5, linewidth=1.6)
