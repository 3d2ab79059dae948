"""ProgressBar: shows iteration, objective and validation score while a fit runs."""

from __future__ import annotations

from typing import Any

from efemb.engine.callbacks import Progress


class ProgressBar:
    """A callback that draws a rich progress bar on standard error."""

    def __init__(self, max_iter: int | None = None) -> None:
        self.max_iter = max_iter
        self._bar: Any = None
        self._task: Any = None
        self._last = ""

    def start(self) -> None:
        """Open the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("pass {task.fields[number]}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._bar.start()
        self._task = self._bar.add_task("fit", total=1.0, number=1, note="")

    def step(self, done: float) -> None:
        """Part of the present pass that is done."""
        if self._bar is None:
            self.start()
        self._bar.update(self._task, completed=done)

    def __call__(self, progress: Progress) -> None:
        """Show the numbers of the finished pass."""
        if self._bar is None:
            self.start()
        if progress.validation is not None:
            self._last = f"  validation {progress.validation:.4f}"
        note = f"objective {progress.objective:.6g}{self._last}"
        number = progress.iteration + 1
        self._bar.update(self._task, completed=0.0, number=number, note=note)

    def close(self) -> None:
        """Leave the last line on the screen."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
