"""Queries: questions as methods of anything that has a fitted model."""

from efemb.fitted.queries.group_queries import GroupQueries
from efemb.fitted.queries.model_queries import ModelQueries
from efemb.fitted.queries.prediction_queries import PredictionQueries
from efemb.fitted.queries.relation_queries import RelationQueries
from efemb.fitted.queries.shop_queries import ShopQueries
from efemb.fitted.queries.vector_queries import VectorQueries


class Queries(
    VectorQueries, RelationQueries, PredictionQueries, GroupQueries, ShopQueries, ModelQueries
):
    """Questions about a fitted model: methods of every estimator and of what `efemb.load` returns.

    Labels name items: products, movies, neurons or words. Without labels in the data, items are
    numbered from 0. Every answer is a `Table`, the best row first.
    """

    _completes_by_vectors = True  # whether `complete` is that of `fitted()`
