"""Run methods x models x seeds as a file lists them, resume what stopped, and compare the rest."""

from toolkit.experiment.file import load_experiment, load_experiments
from toolkit.experiment.plan import show_plan
from toolkit.experiment.session import Settings, run_experiments

__all__ = ["Settings", "load_experiment", "load_experiments", "run_experiments", "show_plan"]
