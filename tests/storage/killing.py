"""Files that show whether they are complete, and a program that kills their writers."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import efemb
from efemb.engine.callbacks import Checkpoint
from efemb.kernels.jit import KernelFiles
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec
from efemb.reproduce.jobs import Job, Runner

SIZE = (400, 50)


@cache
def spec() -> Spec:
    return Spec.resolve(context="basket", family="poisson")


def model(number: int) -> efemb.fitted.FittedEmbedding:
    """Every part of the model contains its number."""
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


def read_model(path: str) -> int:
    return whole(efemb.load(path))


def write_state(path: str, number: int) -> None:
    Checkpoint(path).write({"number": number, "array": np.full(SIZE, number)})


def read_state(path: str) -> int:
    state = Checkpoint(path).read()
    assert state is not None
    assert (state["array"] == state["number"]).all()
    return int(state["number"])


def write_vectors(path: str, number: int) -> None:
    efemb.export.write_vectors(model(number).vectors(), f"{path}/vectors.csv.gz")


def read_vectors(path: str) -> int:
    table = np.loadtxt(f"{path}/vectors.csv.gz", delimiter=",", skiprows=1)
    number = int(table[0, 1])
    assert (table[:, 1:] == number).all()
    assert (table[:, 0] == np.arange(400 * number, 400 * number + 400)).all()
    return number


def job(number: int) -> Job:
    """Of the same name, whatever it gives."""
    result = {"number": number}, {"array": np.full(SIZE, number)}
    return Job("study", "a job", {}, lambda: result)


def write_result(path: str, number: int) -> None:
    Runner(Path(path))._do(job(number))


def read_result(path: str) -> int:
    """Arrays of one run and figures of another are not a result: it is done again."""
    (outcome,) = Runner(Path(path)).run([job(0)])
    number = int(outcome.figures["number"])
    assert (outcome.arrays["array"] == number).all()
    return number


def kernel_files(path: str) -> KernelFiles:
    return KernelFiles(path, "kernel-1.py3", "stamp")


def write_kernel(path: str, number: int) -> None:
    kernel_files(path).save("float32", [number] * 10_000)


def read_kernel(path: str) -> int:
    code = kernel_files(path).load("float32")
    assert code is None or len(set(code)) == 1
    return 0 if code is None else int(code[0])


KINDS: dict[str, tuple[Callable[[str, int], None], Callable[[str], int]]] = {
    "model": (lambda path, number: model(number).save(path), read_model),
    "checkpoint": (write_state, read_state),
    "export": (write_vectors, read_vectors),
    "result": (write_result, read_result),
    "cache": (write_kernel, read_kernel),
}


def main(kind: str, path: str, kills: int) -> None:
    """Print the number that each kill left."""
    # A kill, unlike a power cut, loses nothing that was written: without waiting for the disk the
    # kills come nearer to the moments that matter.
    os.fsync = lambda handle: None  # type: ignore[assignment]
    write, read = KINDS[kind]
    began = time.perf_counter()
    write(path, 1)
    longest = min(0.05, 3.0 * (time.perf_counter() - began))
    for _ in range(kills):
        before = number = read(path)
        child = os.fork()  # a new process that need not import anything again
        if child == 0:
            while True:
                number += 1
                write(path, number)
        time.sleep(random.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = read(path)
        print(left, flush=True)
        if left == before:  # on a busy machine, writes take longer than the first one did
            longest = min(0.5, 1.2 * longest)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
