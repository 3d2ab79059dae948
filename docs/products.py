"""Draw docs/products.png, the map of the README: `python docs/products.py [MODEL]`.

MODEL is a folder of a model of these trips, such as `efemb fit` saves. Without one, the default
model of baskets is fitted first, which takes some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

import efemb
from efemb.plots import embedding_map

SHOWN = 2500  # the items that are bought most often


def draw(
    model: efemb.fitted.FittedEmbedding | efemb.BasketEmbedding, trips: efemb.Dataset, path: Path
) -> None:
    """Write the map of the most frequent items with their departments, or categories of grocery."""
    vectors = model.vectors().most_frequent(SHOWN)
    names = (trips.entities, trips.features["department"], trips.features["category"])
    group = {
        label: category if department == "GROCERY" else department
        for label, department, category in zip(*names, strict=True)
    }
    groups = [str(group[label]).lower() for label in vectors]
    figure = Figure(figsize=(9.5, 6.5), layout="constrained")
    picture = embedding_map(vectors, groups=groups, labels=0, ax=figure.add_subplot())
    picture.set_title(
        f"{len(vectors):,} grocery products, placed by what they are bought with "
        f"(K = {vectors.n_components})"
    )
    picture.set(xlabel="", ylabel="")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Fit, or load, and draw."""
    trips = efemb.datasets.fetch_complete_journey()
    if len(sys.argv) > 1:
        model = efemb.load(sys.argv[1])
    else:
        model = efemb.BasketEmbedding(100, n_jobs=-1, random_state=0, verbose=1).fit(trips)
    draw(model, trips, Path(__file__).with_name("products.png"))


if __name__ == "__main__":
    main()
