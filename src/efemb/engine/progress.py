"""ProgressBar: shows iteration, objective and validation score while a fit runs."""

from __future__ import annotations

import time
from typing import Any

from efemb.engine.callbacks import Progress


class ProgressBar:
    """A callback that draws a rich progress bar on standard error."""

    def __init__(self, max_iter: int | None = None) -> None:
        self.max_iter = max_iter
        self._bar: Any = None
        self._task: Any = None
        self._last = ""
        self._passes = 0

    def announce(self, text: str) -> None:
        """Print a line above the bar."""
        from rich.console import Console

        Console(stderr=True).print(text, highlight=False)

    def start(self) -> None:
        """Open the bar; its clock covers the whole fit."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
        from rich.text import Text

        began = time.monotonic()

        class _Clock(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(f"{time.monotonic() - began:.0f} s")

        self._passes = 0
        console = Console(stderr=True)
        # A log file gets the numbers of the last pass in one line instead of a bar.
        drawn = [BarColumn()] if console.is_terminal or console.is_jupyter else []
        number, note = TextColumn("pass {task.fields[number]}"), TextColumn("{task.fields[note]}")
        self._bar = Progress(number, *drawn, note, _Clock(), console=console)
        self._bar.start()
        self._task = self._bar.add_task("fit", total=1.0, number=1, note="")

    def step(self, done: float) -> None:
        """Show the share of the current pass that is done."""
        if self._bar is None:
            self.start()
        self._bar.update(self._task, completed=done, number=self._passes + 1)

    def note(self, status: str) -> None:
        """Show the status of a cluster beside the numbers of the last pass."""
        self._bar.update(self._task, note=f"{status}{self._last}")

    def __call__(self, progress: Progress) -> None:
        """Show the numbers of the finished pass."""
        if self._bar is None:
            self.start()
        if progress.validation is not None:
            self._last = f"  validation {progress.validation:.4f}"
        note = f"objective {progress.objective:.6g}{self._last}"
        self._bar.update(self._task, completed=1.0, number=progress.iteration, note=note)
        self._passes = progress.iteration

    def close(self) -> None:
        """Leave the last line on the screen."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
