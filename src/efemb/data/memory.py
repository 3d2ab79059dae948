"""Available memory, and sizes in words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def available_memory() -> int | None:
    """Available bytes, or None if the system does not report them.

    The minimum of what is free on the machine, what the control group (a container) allows, and
    what the limits of the process (ulimit) allow.
    """
    sizes = (_machine_memory(), *_group_memory(), *_limited_memory())
    limits = [size for size in sizes if size is not None]
    return min(limits, default=None)


def _machine_memory() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _group_memory(root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Remaining memory of each control group of the process; version 2, then version 1."""
    for limit_file, usage_file in _group_files(root):
        limit, used = _read_text(limit_file), _read_text(usage_file)
        if limit is not None and used is not None and limit.strip().isdigit():
            yield max(0, int(limit) - int(used))


@cache
def _group_files(root: Path) -> list[tuple[Path, Path]]:
    """Files with the limit and the usage of each control group of the process."""
    files, own = [], _read_text(Path("/proc/self/cgroup")) or ""
    for line in own.splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        folder, names = root / group.lstrip("/"), ("memory.max", "memory.current")
        if "memory" in controllers.split(","):
            folder = root / "memory" / group.lstrip("/")
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        elif controllers:
            continue
        # Within a container the path is that of the host, and the root is the container's own.
        for candidate in (folder, folder.parent if folder != root else root, root):
            limit_file, usage_file = (candidate / name for name in names)
            if limit_file.exists() and usage_file.exists():
                files.append((limit_file, usage_file))
    return files


def _limited_memory() -> Iterator[int]:
    """Remaining memory under the limits of the process."""
    try:
        import resource
    except ImportError:  # Windows
        return
    sizes = (_read_text(Path("/proc/self/statm")) or "").split()
    if len(sizes) < 6:
        return
    page = os.sysconf("SC_PAGE_SIZE")
    used = {resource.RLIMIT_AS: int(sizes[0]) * page, resource.RLIMIT_DATA: int(sizes[5]) * page}
    for kind, in_use in used.items():
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            yield max(0, limit - in_use)


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):
        return None


def in_words(n_bytes: int) -> str:
    """A size with a suitable unit.

    >>> in_words(32_000_000)
    '32.0 MB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes / 1e3:.1f} kB"
