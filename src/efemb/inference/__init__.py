"""After the fit: new entities, uncertainty, stability and diagnostics."""

from efemb.inference.findings import Finding, Report
from efemb.inference.folding import fold_in
from efemb.inference.laplace import Interval, Laplace, laplace
from efemb.inference.reporting import report
from efemb.inference.stability import Stability, stability

__all__ = [
    "Finding",
    "Interval",
    "Laplace",
    "Report",
    "Stability",
    "fold_in",
    "laplace",
    "report",
    "stability",
]
