"""Plots of fitted models: each function takes a model or a Table and returns matplotlib Axes.

With `backend="plotly"`, they return an interactive plotly Figure instead (extra `explore`).

matplotlib is imported when a plot is drawn. Without `ax=`, a plot gets a new figure that pyplot
does not manage: save it with `ax.figure.savefig("map.png")`; in a notebook, `ax.figure` shows it.
"""

from efemb.plots.answer_bars import answer
from efemb.plots.embedding_map import embedding_map
from efemb.plots.heat_map import similarity
from efemb.plots.page import Page
from efemb.plots.relations import relations
from efemb.plots.reliability_curve import reliability
from efemb.plots.score_curve import score_curve
from efemb.plots.spatial_weights import spatial_weights
from efemb.plots.time_path import change_points, trajectory
from efemb.plots.topic_bars import topics
from efemb.plots.training_history import history

__all__ = [
    "Page",
    "answer",
    "change_points",
    "embedding_map",
    "history",
    "relations",
    "reliability",
    "score_curve",
    "similarity",
    "spatial_weights",
    "topics",
    "trajectory",
]
