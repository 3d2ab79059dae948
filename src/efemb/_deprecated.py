"""Names and modules of version 0.2 that still work for one version, with a FutureWarning."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # as type checkers know it; `typing` would take half of `import efemb`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

REMOVED_IN = "0.4"
# Modules of version 0.2, and the modules that replaced them.
MODULES = {
    "efemb.combine": "efemb.model.combine",
    "efemb.contexts": "efemb.model.contexts",
    "efemb.families": "efemb.model.families",
    "efemb.labelled": "efemb.fitted",
    "efemb.links": "efemb.model.links",
    "efemb.parameters": "efemb.model.parameters",
    "efemb.priors": "efemb.model.priors",
    "efemb.query": "efemb.fitted",
    "efemb.structures": "efemb.model.structures",
    "efemb.zeros": "efemb.model.zeros",
}
# Names that left `efemb` for a module below it.
_MOVED = {
    "efemb.baselines": "ShiftedPPMI",
    "efemb.data": "aligned split",
    "efemb.engine.callbacks": "Checkpoint EarlyStopping JsonLinesLog",
    "efemb.engine.optimizers": "LBFGS SGD Adagrad Adam",
    "efemb.estimators": "model_named",
    "efemb.evaluation": (
        "Predictions analogies held_out_entries held_out_words leave_fold_out leave_one_out "
        "score_grid word_similarity"
    ),
    "efemb.export": (
        "read_glove read_word2vec to_keyedvectors write_projector write_vectors write_word2vec"
    ),
    "efemb.fitted": "FittedEmbedding",
    "efemb.model.combine": "Combine Linear Reverse",
    "efemb.model.contexts": "Context",
    "efemb.model.families": "Family Interval",
    "efemb.model.links": "Identity Link Log LogSoftplus Softplus",
    "efemb.model.parameters": "Parameters",
    "efemb.model.priors": "Prior",
    "efemb.model.structures": "Structure",
    "efemb.model.zeros": "Zeros",
    "efemb.simulation": (
        "SimulatedRecording SimulatedTrips Simulation simulate simulate_baskets simulate_iri "
        "simulate_zebrafish"
    ),
}
NAMES = {name: f"{home}.{name}" for home, names in _MOVED.items() for name in names.split()}
# Names of `efemb.fitted` with another spelling.
BRITISH = {
    "LabelledVectors": "efemb.fitted.LabeledVectors",
    "check_labelled": "efemb.fitted.check_labeled",
    "labelled_vectors": "efemb.fitted.labeled_vectors",
}
NAMES["LabelledVectors"] = BRITISH["LabelledVectors"]


def warn_renamed(old: str, new: str) -> None:
    """Warn the caller of the calling function that `old` is now called `new`."""
    warnings.warn(
        f"{old} is now {new}; the old name will be removed in version {REMOVED_IN}",
        FutureWarning,
        stacklevel=3,
    )


def keep_old_names(
    module: str, names: Mapping[str, str], otherwise: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module whose names moved or were renamed.

    Parameters
    ----------
    module : str
    names : mapping
        From the old name to the path of the new one.
    otherwise : callable, optional
        The `__getattr__` for every other name.
    """

    def load(name: str) -> Any:
        if f"{module}.{name}" in MODULES:
            return import_module(f"{module}.{name}")
        if name in names:
            warn_renamed(f"{module}.{name}", names[name])
            home, _, new = names[name].rpartition(".")
            return getattr(import_module(home), new)
        if otherwise is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return otherwise(name)

    return load


class OldModules:
    """Finds modules by their paths of version 0.2.

    Such a module forwards to the one that took its place. It is not a package, so nothing can be
    imported twice from below it.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a spec if the module moved."""
        return ModuleSpec(fullname, self) if fullname in MODULES else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Warn, then forward every name."""
        new = MODULES[module.__name__]
        warn_renamed(module.__name__, new)
        target = import_module(new)

        def forward(name: str) -> Any:
            if name == "__path__":  # with one, modules below would be loaded a second time
                raise AttributeError(name)
            return getattr(target, name)

        vars(module)["__getattr__"] = forward


sys.meta_path.append(OldModules())
