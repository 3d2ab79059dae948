"""Models that tell whether they are whole, and a program that kills the saving of them."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from functools import cache

import numpy as np

import efemb
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec

SIZE = (400, 50)


@cache
def spec() -> Spec:
    return Spec.resolve(context="basket", family="poisson")


def model(number: int) -> efemb.fitted.FittedEmbedding:
    """Every part of it says its number."""
    full = np.full(SIZE, number, np.float32)
    words = efemb.Vocabulary(range(400 * number, 400 * number + 400))
    parameters = Parameters(full, full.copy(), full[:, 0].copy())
    return efemb.fitted.FittedEmbedding(parameters, spec(), vocabulary=words, model=str(number))


def whole(found: efemb.fitted.FittedEmbedding) -> int:
    """The number of a model whose parts belong together."""
    number = int(found.model)
    assert all((array == number).all() for array in found.parameters.arrays())
    assert found.vocabulary is not None
    assert list(found.vocabulary) == list(range(400 * number, 400 * number + 400))
    return number


def main(path: str, kills: int) -> None:
    """Print the number of the model that each kill left."""
    # A kill, unlike a power cut, loses nothing that was written: without waiting for the disk the
    # kills come nearer to the moments that matter.
    os.fsync = lambda handle: None  # type: ignore[assignment]
    began = time.perf_counter()
    model(whole(efemb.load(path)) + 1).save(path)
    longest = min(0.05, 3.0 * (time.perf_counter() - began))
    for _ in range(kills):
        number = whole(efemb.load(path))
        child = os.fork()  # a new process that need not import anything again
        if child == 0:
            while True:
                number += 1
                model(number).save(path)
        time.sleep(random.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print(whole(efemb.load(path)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
