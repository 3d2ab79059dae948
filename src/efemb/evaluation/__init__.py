"""Evaluation: how well models predict, and how well vectors agree with what people say."""

from __future__ import annotations

from efemb.evaluation.analogies import analogies
from efemb.evaluation.held_out import HeldOut, held_out_words
from efemb.evaluation.words import WordSimilarity, word_similarity

__all__ = ["HeldOut", "WordSimilarity", "analogies", "held_out_words", "word_similarity"]
