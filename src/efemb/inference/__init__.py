"""After the fit: new entities, uncertainty, stability and diagnostics."""

from efemb.inference.diagnosis import report
from efemb.inference.findings import Finding, Report
from efemb.inference.model_comparison import ModelComparison, compare_models
from efemb.inference.new_entities import fold_in
from efemb.inference.new_items import add_items
from efemb.inference.new_rows import fold_in_rows
from efemb.inference.seed_stability import Stability, stability
from efemb.inference.uncertainty import Interval, Laplace, laplace

__all__ = [
    "Finding",
    "Interval",
    "Laplace",
    "ModelComparison",
    "Report",
    "Stability",
    "add_items",
    "compare_models",
    "fold_in",
    "fold_in_rows",
    "laplace",
    "report",
    "stability",
]
