"""Published figures: scores printed in the paper or computed by independent programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A score as the paper prints it, and its standard error."""

    score: float
    error: float


# The paper's table of predictive log-likelihoods, by model and K.
PRINTED_BASKETS: Mapping[tuple[str, int], Printed] = {
    ("p-emb", 20): Printed(-7.497, 0.007),
    ("p-emb", 100): Printed(-7.199, 0.008),
    ("p-emb (dw)", 20): Printed(-7.110, 0.007),
    ("p-emb (dw)", 100): Printed(-6.950, 0.007),
    ("ap-emb", 20): Printed(-7.868, 0.005),
    ("ap-emb", 100): Printed(-8.414, 0.003),
    ("HPF", 20): Printed(-7.740, 0.008),
    ("HPF", 100): Printed(-7.626, 0.007),
    ("Poisson PCA, positive", 20): Printed(-8.314, 0.009),
    ("Poisson PCA, positive", 100): Printed(-11.01, 0.01),
}
PRINTED_MOVIES: Mapping[tuple[str, int], Printed] = {
    ("p-emb", 20): Printed(-5.691, 0.006),
    ("p-emb", 100): Printed(-5.726, 0.005),
    ("p-emb (dw)", 20): Printed(-5.790, 0.003),
    ("p-emb (dw)", 100): Printed(-5.798, 0.003),
    ("ap-emb", 20): Printed(-5.964, 0.003),
    ("ap-emb", 100): Printed(-6.118, 0.002),
    ("HPF", 20): Printed(-5.787, 0.006),
    ("HPF", 100): Printed(-5.859, 0.006),
    ("Poisson PCA, positive", 20): Printed(-5.908, 0.006),
    ("Poisson PCA, positive", 100): Printed(-7.50, 0.01),
}
# Means over splits 0, 1, 2 from an independent NumPy implementation (HPF: hpfrec).
KNOWN_MOVIES: Mapping[tuple[str, int | None], float] = {
    ("popularity", None): -6.050,
    ("p-emb", 20): -5.685,
    ("p-emb", 100): -5.686,
    ("p-emb (dw)", 20): -5.791,
    ("p-emb (dw)", 100): -5.790,
    ("ap-emb", 20): -6.004,
    ("ap-emb", 100): -6.125,
    ("ap-emb, log-normal(.01, -3)", 20): -5.787,
    ("ap-emb, log-normal(.01, -3)", 100): -5.756,
    ("ap-emb, half-normal(1)", 20): -5.798,
    ("ap-emb, half-normal(1)", 100): -5.764,
    ("HPF", 20): -5.706,
    ("HPF", 100): -5.728,
    ("Poisson PCA", 20): -5.670,
    ("Poisson PCA", 100): -5.711,
    ("p-emb, total scale", 20): -5.672,
    ("p-emb, total scale", 100): -5.674,
    ("categorical", 20): -5.636,
}
# The same on Complete Journey, one split; HPF on the first 1,500 test trips. The scores of the
# paper's settings were still improving after 8 to 10 passes.
KNOWN_BASKETS: Mapping[tuple[str, int | None], float] = {
    ("popularity", None): -8.262,
    ("p-emb", 100): -8.28,
    ("p-emb (dw)", 100): -8.15,
    ("HPF", 20): -8.09,
    ("HPF", 100): -8.04,
    ("p-emb, defaults", 20): -7.678,
    ("p-emb, defaults", 100): -7.531,
    ("p-emb (dw), defaults", 100): -7.602,
}
TOLERANCE = 0.01  # how far below its known score an embedding of movies may fall
LEAST_MOVIES: Mapping[tuple[str, int], float] = {
    ("HPF", 20): -5.716,
    ("Poisson PCA", 20): -5.68,
}
LEAST_GAIN_BASKETS = 0.45  # nats per unit, of our best model over HPF
