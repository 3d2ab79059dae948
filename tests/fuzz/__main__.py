"""`make fuzz MINUTES=10`: damaged inputs for every target, until the time is up.

An input that ends in a bare error, a hang or too much memory is shrunk and kept in `seeds/`, where
the suite replays it ever after.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz.mutations import damage
from fuzz.targets import Target, clear, targets

SEEDS = Path(__file__).parent / "seeds"
EXAMPLES = 60  # of a target in one turn
SECONDS = 30.0  # of CPU time that a single input may take
WAIT = 300.0  # and by the clock, which other programs of a busy machine slow down
MEMORY = 12 << 30  # addresses, which threads reserve generously

CHOSEN = settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


class HangError(BaseException):
    """An input took too long; not an Exception, so that nobody handles it."""


def stop(*_: Any) -> None:
    """Handler of the alarm."""
    raise HangError(f"no answer in {SECONDS:.0f} s of CPU time or {WAIT:.0f} s")


def set_alarms(cpu: float, clock: float) -> None:
    """Stop after this much CPU time of all threads, or this much time; 0 turns an alarm off."""
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, clock)


def fuzz_once(target: Target, folder: Path, ran: Counter[str]) -> tuple[bytes, str] | None:
    """Damage the seed of a target many times; the shrunk input that failed, and how."""
    last = b""

    @CHOSEN
    @seed(random.getrandbits(64))
    @given(damage(target.seed()))
    def attack(content: bytes) -> None:
        nonlocal last
        last = content
        ran[target.name] += 1
        set_alarms(SECONDS, WAIT)
        try:
            target.check(content, clear(folder))
        finally:
            set_alarms(0.0, 0.0)

    try:
        attack()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return last, "".join(traceback.format_exception(error)[-6:])
    return None


def keep(target: Target, content: bytes) -> Path:
    """Store an input, the first line of which names its target."""
    name = hashlib.sha256(content).hexdigest()[:12]
    path = SEEDS / f"{target.name.replace(' ', '-').replace('.', '_')}-{name}"
    path.write_bytes(f"{target.name}\n".encode() + content)
    return path


def main() -> int:
    """Fuzz all targets in turn."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", default="", help="targets whose name contains this")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for alarm in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(alarm, stop)
    chosen = [target for name, target in targets().items() if options.only in name]
    ran: Counter[str] = Counter()
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).joinpath(*"abcdef")
        for target in chosen:  # kernels are compiled before any clock runs
            target.check(target.seed(), clear(folder))
        end = time.monotonic() + 60 * options.minutes
        while time.monotonic() < end:
            for target in chosen:
                failed = fuzz_once(target, folder, ran) if target.name not in failures else None
                if failed is not None:
                    content, how = failed
                    failures[target.name] = how
                    print(f"\n{target.name}: kept in {keep(target, content)}\n{how}", flush=True)
                if time.monotonic() >= end:
                    break
    print("\n".join(f"{count:8,} {name}" for name, count in sorted(ran.items())))
    print(f"{sum(ran.values()):,} inputs for {len(ran)} targets, {len(failures)} with bare errors")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
