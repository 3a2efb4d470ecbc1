"""The foreign cases: rows and answers that other engines' authors test with, and our verdicts.

```
cases.json ──▶ Case ──▶ translation of its id ──▶ rows, compared as a multiset ──▶ verdict
```

A translation is a function of ours, by the id of its case. It says whether it is straight or a
detour. A case without one is said to be not expressible, or not translated.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import slackwater as sw
from benchmarks.frame import check

__all__ = [
    "Answers",
    "Case",
    "Translation",
    "Translations",
    "cells",
    "differences",
    "read_cases",
    "results",
]

Way = Literal["straight", "detour"]
Answers = Iterable[tuple[Any, ...]]
DIGITS = 9
"""Significant digits of floats and decimals that are compared."""


@dataclass(frozen=True)
class Case:
    """A case that others wrote.

    Attributes:
        name: its id.
        suite: suite that it is from.
        input: its rows, or the files in which they are.
        expected: its answer, or the file in which it is.
        lacks: what it needs beyond a language like ours of 2026-11-28, in words.
        folder: folder of the suites' files.
    """

    name: str
    suite: str
    input: Any
    expected: Any
    lacks: tuple[str, ...]
    folder: Path

    def answer(self) -> list[Any]:
        """Return the rows of its answer."""
        if isinstance(self.expected, str):
            rows = read_rows(self.folder / self.expected)
            assert isinstance(rows, list), self.expected
            return rows
        return list(self.expected)


@dataclass(frozen=True)
class Translation:
    """Flow of a case.

    Attributes:
        find: function of the case that returns the rows found.
        way: whether it is straight, or a detour.
        reason: reason of an answer that differs by intent; "" if it is equal.
        extra, lacking: rows that are found beyond the answer, and those that are not, where it
            differs by intent.
    """

    find: Callable[[Case], Answers]
    way: Way
    reason: str = ""
    extra: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


class Translations:
    """The translations of suites, {id: translation}."""

    def __init__(self) -> None:
        self.by_name: dict[str, Translation] = {}

    def __call__(
        self, *names: str, way: Way = "straight"
    ) -> Callable[[Callable[[Case], Answers]], Callable[[Case], Answers]]:
        """Register the translation of some cases."""

        def register(find: Callable[[Case], Answers]) -> Callable[[Case], Answers]:
            for name in names:
                assert name not in self.by_name, f"{name} has two translations"
                self.by_name[name] = Translation(find, way)
            return find

        return register

    def differs(
        self, name: str, reason: str, *, extra: Iterable[str] = (), lacking: Iterable[str] = ()
    ) -> Callable[[Callable[[Case], Answers]], Callable[[Case], Answers]]:
        """Register a translation whose answer differs by intent, by these rows."""

        def register(find: Callable[[Case], Answers]) -> Callable[[Case], Answers]:
            self.by_name[name] = Translation(
                find, "straight", reason, tuple(extra), tuple(lacking)
            )
            return find

        return register


def read_cases(folder: Path) -> list[Case]:
    """Return the cases of a folder, in its order."""
    rows = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    return [
        Case(
            row["id"], row["suite"], row["input"], row["expected"], tuple(row["missing"]), folder
        )
        for row in rows
    ]


@cache
def read_rows(path: Path) -> list[Any] | dict[str, Any]:
    """Return a JSON file, or one with a row on each line."""
    text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(found, dict) and text.count("\n") <= 1:
        return [found] if "after" in found or "\n" in text.strip() else found
    assert isinstance(found, list | dict)
    return found


def results(
    make: Callable[[sw.Dataflow], sw.Stream], *, setting: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a flow in the simulator, whose ledger must balance.

    Args:
        make: function of a flow that returns the stream of its answer.
        setting: settings of the flow.
    """
    flow = sw.Dataflow("case", **(setting or {}))
    make(flow).sink("answer", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        check(job.wait().ledger.is_balanced, "the ledger does not balance")
        table = job.result("answer")
    assert isinstance(table, pa.Table)
    return table.to_pylist()


def differences(found: Answers, answer: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Return the rows found beyond an answer, and the rows of it that are not found."""
    own, theirs = (Counter(map(cells, rows)) for rows in (found, answer))
    return sorted((own - theirs).elements()), sorted((theirs - own).elements())


def cells(row: Any) -> str:
    """Return a row as text: its values with a space between them."""
    if isinstance(row, str):
        return re.sub(r"\s+", " ", " ".join(_number(word) for word in row.split())).strip()
    values = row.values() if isinstance(row, Mapping) else row
    if not isinstance(values, list | tuple) and not isinstance(row, Mapping):
        values = [row]
    return cells(" ".join(map(_cell, values)))


def _cell(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float() | Decimal():
            return _number(str(value))
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(sep=" ")
            return text.rstrip("0") if "." in text else text
        case list() | tuple():
            return "[" + ", ".join(map(_cell, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{key}: {_cell(each)}" for key, each in value.items()) + "}"
    return str(value)


def _number(word: str) -> str:
    """Return a number's text with `DIGITS` digits, or another word as it is."""
    if not re.fullmatch(r"-?\d+\.\d+(e[-+]?\d+)?|-?\d+e[-+]?\d+", word):
        return word
    return f"{float(word):.{DIGITS}g}"
