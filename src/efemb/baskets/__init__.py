"""Baskets: the recommended model of transactions, and what it is made of."""

from __future__ import annotations

from efemb.baskets.embedding import BasketEmbedding

__all__ = ["BasketEmbedding"]
