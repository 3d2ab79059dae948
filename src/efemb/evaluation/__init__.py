"""Evaluation: how well models predict, and how well vectors agree with human judgments."""

from __future__ import annotations

from efemb.evaluation.analogies import analogies
from efemb.evaluation.calibration import Calibrated, calibrate
from efemb.evaluation.comparison import compare
from efemb.evaluation.grid import score_grid
from efemb.evaluation.held_out import HeldOut, held_out_words
from efemb.evaluation.predictions import Predictions
from efemb.evaluation.protocols import held_out_entries, leave_fold_out, leave_one_out
from efemb.evaluation.repeats import AmongItsKind, is_repeat
from efemb.evaluation.scores import Score
from efemb.evaluation.words import WordSimilarity, word_similarity

__all__ = [
    "AmongItsKind",
    "Calibrated",
    "HeldOut",
    "Predictions",
    "Score",
    "WordSimilarity",
    "analogies",
    "calibrate",
    "compare",
    "held_out_entries",
    "held_out_words",
    "is_repeat",
    "leave_fold_out",
    "leave_one_out",
    "score_grid",
    "word_similarity",
]
