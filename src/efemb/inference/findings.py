"""Findings: what a diagnosis says, in plain words and as numbers."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["ok", "note", "warning"]
SIGNS = {"ok": "ok", "note": "note", "warning": "LOOK"}
WIDTH = 96


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    topic : what;  level : "ok", "note" or "warning";  text : what was found, in a sentence
    advice : what to do about it, "" where there is nothing to do;  numbers : the figures behind it
    """

    topic: str
    level: Level
    text: str
    advice: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return {
            "topic": self.topic,
            "level": self.level,
            "text": self.text,
            "advice": self.advice,
            **self.numbers,
        }


@dataclass(frozen=True, repr=False)
class Report:
    """All findings about a model; prints as text, what needs a look first in capitals."""

    model: str
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that ask for something."""
        return tuple(one for one in self.findings if one.level == "warning")

    def __getitem__(self, topic: str) -> Finding:
        """The finding about a topic."""
        for one in self.findings:
            if one.topic == topic:
                return one
        raise KeyError(topic)

    def __contains__(self, topic: object) -> bool:
        """Whether a topic was looked at."""
        return any(one.topic == topic for one in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, numbers and text."""
        return {"model": self.model, "findings": [one.to_dict() for one in self.findings]}

    def __repr__(self) -> str:
        """A paragraph for each finding."""
        wide = max(len(one.topic) for one in self.findings)
        lines = [self.model]
        for one in self.findings:
            text = one.text + (f" {one.advice}" if one.advice else "")
            first = f"{SIGNS[one.level]:<5} {one.topic:<{wide}}  "
            lines += textwrap.wrap(
                text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first)
            )
        return "\n".join(lines)
