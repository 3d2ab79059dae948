"""The paper's figure: neurons from above, and the weights of three with their neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from efemb.contexts import Neighbors
from efemb.data.dataset import Dataset
from efemb.fitted import FittedEmbedding
from efemb.parameters import Parameters
from efemb.plots.edges import Edges
from efemb.plots.spatial_weights import spread_out
from efemb.reproduce.neuron_fits import ingredients
from efemb.reproduce.neuron_settings import NeuronModel
from efemb.spec import Spec


def fitted_model(model: NeuronModel, arrays: Mapping[str, Any]) -> FittedEmbedding:
    """The fitted model that a job kept: vectors and positions say all of it."""
    positions = arrays["positions"]
    around = Neighbors(model.c, scale=model.scale)
    bound = around.bind(Dataset(np.zeros((1, len(positions))), positions=positions))
    return FittedEmbedding(
        Parameters(arrays["rho"], arrays["alpha"]),
        Spec.resolve(context=around, intercept=False, **ingredients(model)),
        positions=positions,
        lists=bound.lists,
        model="GaussianEmbedding",
    )


def well_inside(fitted: FittedEmbedding, n: int = 3) -> list[int]:
    """Neurons of large weights that are well apart, none of them alone at the rim of the tissue."""
    edges, places = Edges(fitted), fitted.positions
    assert places is not None  # `fitted_model` gives them
    members = edges.members.reshape(len(places), -1)
    reach = np.linalg.norm(places[members] - places[:, None], axis=2).max(axis=1)
    strength = np.where(reach <= np.median(reach), edges.strength(), -np.inf)
    return spread_out(places[:, :2], strength, n)


def weight_summary(fitted: FittedEmbedding) -> str:
    """How many weights are negative, and how large they are."""
    weight = fitted.weights()["weight"]
    negative = weight < 0
    return (
        f"{len(weight):,} weights; {negative.mean():.0%} are negative, and those make up "
        f"{-weight[negative].sum() / np.abs(weight).sum():.0%} of the sum of absolute weights."
    )
