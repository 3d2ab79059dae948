"""Findings: the results of a diagnosis, in plain words and as numbers."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

Level = Literal["ok", "note", "warning"]
SIGNS = {"ok": "ok", "note": "note", "warning": "LOOK"}
WIDTH = 96


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    topic : what was checked;  level : "ok", "note" or "warning";  text : the result in a sentence
    advice : what to do, "" where nothing needs to be done;  numbers : the figures behind the text
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
    """All findings about a model; prints as text, with warnings marked in capitals."""

    model: str
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that call for action."""
        return tuple(finding for finding in self.findings if finding.level == "warning")

    def __getitem__(self, topic: str) -> Finding:
        """The finding about a topic."""
        for finding in self.findings:
            if finding.topic == topic:
                return finding
        raise KeyError(topic)

    def __contains__(self, topic: object) -> bool:
        """Whether a topic was checked."""
        return any(finding.topic == topic for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, numbers and text."""
        return {"model": self.model, "findings": [finding.to_dict() for finding in self.findings]}

    def _repr_html_(self) -> str:
        cells = [(SIGNS[each.level], each.topic, each.text, each.advice) for each in self.findings]
        lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in cells]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><caption>{escape(self.model)}</caption>{body}</table>"

    def __repr__(self) -> str:
        """A paragraph per finding."""
        width = max(len(finding.topic) for finding in self.findings)
        lines = [self.model]
        for finding in self.findings:
            text = finding.text + (f" {finding.advice}" if finding.advice else "")
            first = f"{SIGNS[finding.level]:<5} {finding.topic:<{width}}  "
            lines += textwrap.wrap(
                text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first)
            )
        return "\n".join(lines)
