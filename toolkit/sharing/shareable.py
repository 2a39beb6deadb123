"""A run as a folder that anybody can load with plain transformers, peft or scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Shareable:
    """A folder that can be given to anybody: complete, loadable without this package.

    Args:
        folder: what to give away.
        library: "transformers", "peft" or "sklearn": what loads it.
        pipeline_tag: the Hub's name of the task (text-classification, token-classification,
            image-classification, translation, text-generation, question-answering, fill-mask);
            None for a model without a task, such as an encoder alone.
        base_model: name on the Hub of the model it was made from; None where it was made from none,
            or from one that is not on the Hub.
        remote_code: it loads with `trust_remote_code=True` only: transformers lacks the
            architecture, so its source lies in the folder.
        usage: a few lines of Python that load and use it; `{model}` stands for the folder or the
            name on the Hub (`usage_of`).
        check: what `toolkit.sharing.fresh_process.check_shareable` compares.
    """

    folder: Path
    library: str
    pipeline_tag: str | None
    base_model: str | None
    remote_code: bool
    usage: str
    check: str

    def usage_of(self, name: str) -> str:
        """`usage` with a folder or a name on the Hub put in."""
        return self.usage.replace("{model}", name)


def write_shareable(run: Path, folder: Path, *, merged: bool | None = None) -> Shareable:
    """Copy or convert what a run has made into a folder that loads without this package.

    Says in a line on stderr whatever it converts or leaves out.

    Args:
        run: directory of a complete run (`results/runs/<recipe>/<id>`), or a model folder.
        folder: new, or empty.
        merged: for a run with an adapter (LoRA, DoRA): True gives the merged model, False the
            adapter alone, None the adapter where its base model is on the Hub, else the merged one.

    Raises:
        UserError: no run there, one that did not finish, no model or a damaged one, a folder that
            is not empty, or an adapter alone whose base is not on the Hub.
    """
    raise NotImplementedError
