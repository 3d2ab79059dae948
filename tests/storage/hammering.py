"""A program that saves models to one folder, or loads what is there, for a while."""

from __future__ import annotations

import os
import sys
import time

import efemb
from storage import killing


def main(role: str, path: str, seconds: float) -> None:
    """Print how often it was done; any error ends the program."""
    os.fsync = lambda handle: None  # type: ignore[assignment]  # more saves, fewer waits
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if role == "load":
            killing.whole(efemb.load(path))
        else:
            killing.model(done % 7).save(path)
        done += 1
    print(done)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
