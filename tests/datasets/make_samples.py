"""Write the simulated samples that ship with the package: `python -m datasets.make_samples`.

Everything is drawn by the simulators of the package (trips, recording) or from the small grammar
below (text), so that the samples are free of anybody's rights. A test repeats this.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np

from efemb.simulation import simulate_iri, simulate_zebrafish

FOLDER = Path(__file__).parents[2] / "src" / "efemb" / "datasets" / "samples"
GOODS = (
    ("whole milk", "yogurt", "butter", "cream cheese", "curd", "eggs"),
    ("rolls", "brown bread", "pastry", "croissant", "baguette", "jam"),
    ("soda", "bottled beer", "salty snack", "chocolate", "popcorn", "ice cream"),
    ("apples", "bananas", "tomatoes", "onions", "potatoes", "carrots"),
    ("pasta", "rice", "olive oil", "tuna", "tomato sauce", "parmesan"),
    ("detergent", "napkins", "sponges", "candles", "batteries", "light bulbs"),
)
ANIMALS = ("cat", "dog", "horse", "cow", "sheep", "goat", "hen", "mouse")
PEOPLE = ("farmer", "baker", "teacher", "doctor", "child", "sailor", "king", "queen")
FOODS = ("bread", "cheese", "soup", "rice", "cake", "apple", "fish", "milk")
PLACES = ("kitchen", "garden", "field", "harbor", "school", "market", "castle", "barn")
SIZES = ("small", "large", "old", "young", "hungry", "quiet", "happy", "tired")
COLORS = ("black", "white", "brown", "red", "grey")
ACTIONS = ("eats", "likes", "wants", "smells", "finds", "brings")
MOTIONS = ("sleeps", "sits", "runs", "waits", "walks", "works")
DEEDS = ("sells", "buys", "cooks", "carries", "counts", "cuts")


def draw_trips() -> str:
    """1,000 trips to a shop of 36 items, in the columns basket, item and count."""
    labels = [name for category in GOODS for name in category]
    data = simulate_iri(
        n_rows=1_000, n_entities=36, n_components=4, n_lines=4_500, strength=3.0, seed=3
    ).data
    cells = data.values.tocoo()
    lines = [
        f"{t + 1},{labels[n]},{x:g}"
        for t, n, x in zip(cells.row, cells.col, cells.data, strict=True)
    ]
    return "\n".join(["basket,item,count", *lines]) + "\n"


def draw_recording() -> dict[str, np.ndarray]:
    """150 frames of 60 neurons in steps of 0.05, and positions in micrometers."""
    data = simulate_zebrafish(n_neurons=60, n_frames=150, n_fields=12, width=80.0, seed=1).data
    steps = np.clip(np.round(np.asarray(data.values, dtype=np.float64) / 0.05), -127, 127)
    return {
        "steps": steps.astype(np.int8),
        "step": np.array(0.05),
        "positions": np.round(data.positions).astype(np.int16),
    }


def draw_text() -> str:
    """900 sentences of a small grammar."""
    rng = np.random.default_rng(0)

    def one(words: tuple[str, ...]) -> str:
        return str(words[int(len(words) * rng.random() ** 1.3)])

    def sentence() -> str:
        kind = rng.integers(5)
        if kind == 0:
            return (
                f"the {one(SIZES)} {one(COLORS)} {one(ANIMALS)} {one(MOTIONS)} in the {one(PLACES)}"
            )
        if kind == 1:
            return f"the {one(COLORS)} {one(ANIMALS)} {one(ACTIONS)} {one(FOODS)}"
        if kind == 2:
            return f"the {one(SIZES)} {one(PEOPLE)} {one(DEEDS)} {one(FOODS)} at the {one(PLACES)}"
        if kind == 3:
            return f"a {one(PEOPLE)} and a {one(PEOPLE)} eat {one(FOODS)} with {one(FOODS)}"
        fed = f"the {one(PEOPLE)} feeds the {one(ANIMALS)} and the {one(ANIMALS)}"
        return f"{fed} near the {one(PLACES)}"

    return "\n".join(sentence() for _ in range(900)) + "\n"


def pack(text: str) -> bytes:
    """Compressed without name and time, so that the same text gives the same bytes."""
    return gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)


def main() -> None:
    """Write all samples."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "trips.csv.gz").write_bytes(pack(draw_trips()))
    (FOLDER / "text.txt.gz").write_bytes(pack(draw_text()))
    stream = io.BytesIO()
    np.savez_compressed(stream, **draw_recording())
    (FOLDER / "recording.npz").write_bytes(stream.getvalue())


if __name__ == "__main__":
    main()
