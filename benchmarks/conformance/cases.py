"""The foreign cases: rows and answers that other engines' authors test with, and our verdicts.

```
cases.json ──▶ Case ──▶ translation of its id ──▶ rows, compared as a multiset ──▶ verdict
```

A translation is a function of ours, by the id of its case. A suite has in code what is expected of
each: equal, or different by these rows. A case without a translation is said to be not expressible,
with what is missing; else it is not translated.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import slackwater as sw
from benchmarks.frame import check
from slackwater.runtime.plan.changes import carried_by

__all__ = [
    "VERDICTS",
    "Case",
    "Difference",
    "Rows",
    "Suite",
    "Translation",
    "Verdict",
    "Way",
    "as_time",
    "cells",
    "differences",
    "heard",
    "read_cases",
    "read_rows",
    "results",
    "rows_of",
    "sink_answer",
    "there_of",
]

Way = Literal["straight", "detour", "code"]
Verdict = Literal[
    "equal", "detour", "different", "code", "wrong", "not expressible", "not translated"
]
VERDICTS: dict[Verdict, str] = {
    "equal": "equal",
    "detour": "by a detour",
    "different": "different by intent",
    "code": "custom code",
    "wrong": "wrong",
    "not expressible": "not expressible",
    "not translated": "not translated",
}
Rows = Iterable[Any]
DIGITS = 9
"""Significant digits of floats and decimals that are compared."""
SECONDS = re.compile(r"(\d\d:\d\d:\d\d\.\d*?)0+")
NUMBER = re.compile(r"-?\d+\.\d+(e[-+]?\d+)?|-?\d+e[-+]?\d+")


@dataclass(frozen=True)
class Case:
    """A case that others wrote.

    Attributes:
        name: id of the case.
        suite: name of the suite that it is from.
        source: project, file and test that it is from.
        input: its rows, or the files that have them.
        expected: its answer, or the file that has it.
        folder: folder of the suites' files.
    """

    name: str
    suite: str
    source: str
    input: Any
    expected: Any
    folder: Path

    @property
    def is_here(self) -> bool:
        """Whether its rows and its answer are here, not in a checkout of its project."""
        return bool(self.input != "in the source")


@dataclass(frozen=True)
class Translation:
    """Flow of a case.

    Attributes:
        run: function of the case that returns the rows of the flow.
        way: whether its steps are built in, built in but bent, or a user's code.
        note: how it is bent, or what the code does.
    """

    run: Callable[[Case], Rows]
    way: Way
    note: str


@dataclass(frozen=True)
class Difference:
    """Rows by which our answer differs by intent.

    Attributes:
        reason: reason of the difference, for the page.
        extra: rows of ours that are not in the answer.
        lacking: places, in the answer, of its rows that are not ours.
    """

    reason: str
    extra: tuple[str, ...] = ()
    lacking: tuple[int, ...] = ()


def _answer(case: Case) -> list[Any]:
    """Return the rows of an answer, in the case or in a file of rows."""
    return (
        read_rows(case.folder / case.expected) if isinstance(case.expected, str) else case.expected
    )


@dataclass
class Suite:
    """A suite that others wrote: its translations, and their verdicts.

    Args:
        name: name of the suite in the cases.
        answer: function of a case that returns the rows of its answer.
        is_pattern: function of a case's name that says whether it is one of a pattern language.
    """

    name: str
    answer: Callable[[Case], list[Any]] = _answer
    is_pattern: Callable[[str], bool] = lambda _: False
    translations: dict[str, Translation] = field(default_factory=dict, init=False)
    differences: dict[str, Difference] = field(default_factory=dict, init=False)
    wrong: dict[str, str] = field(default_factory=dict, init=False)
    missing: dict[str, str] = field(default_factory=dict, init=False)

    def translation(
        self, *names: str, way: Way = "straight", note: str = ""
    ) -> Callable[[Callable[[Case], Rows]], Callable[[Case], Rows]]:
        """Register the translation of some cases."""
        assert bool(note) == (way != "straight"), f"{names}: a detour says how, nothing else does"

        def register(run: Callable[[Case], Rows]) -> Callable[[Case], Rows]:
            for name in names:
                assert name not in self.translations, f"{name} has two translations"
                self.translations[name] = Translation(run, way, note)
            return run

        return register

    def differs(
        self, name: str, reason: str, *, extra: Iterable[str] = (), lacking: Iterable[int] = ()
    ) -> None:
        """Pin the rows by which the answer of a translation differs by intent."""
        self.differences[name] = Difference(reason, tuple(extra), tuple(lacking))

    def lacks(self, what: str, *names: str) -> None:
        """Say what is missing to translate some cases."""
        for name in names:
            assert name not in self.missing, f"{name} is said twice to be not expressible"
            self.missing[name] = what

    def verdict(self, case: Case) -> Verdict:
        """Return the verdict of a case, as it is pinned."""
        if case.name in self.wrong:
            return "wrong"
        if case.name in self.differences:
            return "different"
        if case.name in self.translations:
            way = self.translations[case.name].way
            return "equal" if way == "straight" else way
        return "not expressible" if case.name in self.missing else "not translated"

    def is_bent(self, case: Case) -> bool:
        """Whether a case is translated by a detour."""
        return case.name in self.translations and self.translations[case.name].way == "detour"

    def problem(self, case: Case) -> str:
        """Run the translation of a case; return what is wrong with its rows, "" if nothing is."""
        pinned = self.differences.get(case.name, Difference(""))
        try:
            answer = self.answer(case)
            own, theirs = differences(self.translations[case.name].run(case), answer)
        except Exception as error:  # the others are to run
            return f"{case.name}: {type(error).__name__}: {str(error)[:300]}"
        lacking = sorted(cells(answer[place]) for place in pinned.lacking)
        if (own, theirs) == (sorted(pinned.extra), lacking):
            return ""
        unlike = [
            f"ours alone {own[:4]}" if own else "",
            f"theirs alone {theirs[:4]}" if theirs else "",
        ]
        return f"{case.name}: " + (", ".join(filter(None, unlike)) or "no difference any more")


def read_cases(folder: Path) -> list[Case]:
    """Return the cases of a folder, in its order."""
    rows = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    return [
        Case(row["id"], row["suite"], row["source"], row["input"], row["expected"], folder)
        for row in rows
    ]


@cache
def read_rows(path: Path) -> list[Any]:
    """Return the rows of a file: a JSON list, or a JSON value on each line."""
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        rows = json.loads(text)
        assert isinstance(rows, list), path
        return rows
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def results(
    make: Callable[[sw.Dataflow], sw.Stream], *, stop_s: float | None = None, **setting: Any
) -> list[dict[str, Any]]:
    """Return the rows of a flow in the simulator, whose ledger must balance.

    Args:
        make: function of a flow that returns the stream of its answer.
        stop_s: seconds after which the job is stopped; None to read to the end of the input.
        **setting: settings of the flow.
    """
    flow = sw.Dataflow("case", **setting)
    has_changes = sink_answer(flow, make(flow), "answer")
    stops = [] if stop_s is None else [sw.testing.UserStops(at_ns=round(stop_s * 1e9))]
    with sw.Simulation(nodes=1) as nodes:
        job = nodes.submit(flow, faults=stops)
        check(job.wait().ledger.is_balanced, "the ledger does not balance")
        table = job.result("answer")
    assert isinstance(table, pa.Table)
    rows: list[dict[str, Any]] = table.to_pylist()
    return there_of(rows) if has_changes else rows


def sink_answer(flow: sw.Dataflow, answer: sw.Stream, name: str) -> bool:
    """Write an answer to a sink; return whether its rows are changes, for `there_of`."""
    has_changes = carried_by(flow.steps, answer.name).changes == "retractions"
    if has_changes:  # an update is a deletion and an insertion downstream of a filter
        answer = answer.filter(sw.lit(True))
    answer.sink(name, sw.collect_sink())
    return has_changes


def there_of(changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that are there after changes: insertions, and deletions of equal rows."""
    there: list[dict[str, Any]] = []
    for row in changes:
        own = {name: value for name, value in row.items() if name != "change"}
        if row["change"] == "delete":
            there.remove(own)
        else:
            there.append(own)
    return there


def rows_of(
    flow: sw.Dataflow, rows: Iterable[Any], columns: Mapping[str, str], **options: Any
) -> sw.Stream:
    """Return rows as a source of a flow, in any order of event time.

    Args:
        flow: flow that gets the source.
        rows: rows, a list of values each; texts of times are read.
        columns: {column: alias of an Arrow type} in the order of the values; `t` is event time.
        **options: further options of the source.
    """
    named = zip(zip(*rows, strict=True), columns.items(), strict=True)
    arrays = {name: pa.array(values, pa.type_for_alias(kind)) for values, (name, kind) in named}
    options = {"event_time": "t", "out_of_order": "late", "disorder": "1000d", **options}
    return flow.source(flow.name_for("rows", None), sw.table(pa.table(arrays)), **options)


def heard(
    flow: sw.Dataflow,
    rows: Iterable[Any],
    columns: Mapping[str, str],
    *,
    goes_on: bool = False,
    **options: Any,
) -> sw.Stream:
    """Return rows as a source from which one comes each second.

    Args:
        flow: flow that gets the source.
        rows: rows, a list of values each, in the order in which they come.
        columns: {column: alias of an Arrow type} in the order of the values; `t` is event time.
        goes_on: whether the input goes on after the rows, for a job that is stopped then: the last
            one comes again a day later.
        **options: further options of the source.
    """
    numbered = [[*row, n] for n, row in enumerate(rows)]
    if goes_on:
        numbered.append([*numbered[-1][:-1], 86_400])
    columns = {**columns, "heard": "timestamp[s]"}
    return rows_of(flow, numbered, columns, arrival="heard", speed=1.0, **options)


def as_time(text: str, *, day: str = "") -> dt.datetime:
    """Return a time as it is written in the cases: in UTC, without a zone.

    Args:
        text: time, or a time of a day.
        day: day before the time.
    """
    return dt.datetime.fromisoformat(f"{day} {text}".strip()).replace(tzinfo=None)


def differences(own: Rows, answer: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Return the rows of ours beyond an answer, and the rows of it that are not ours."""
    ours, theirs = (Counter(map(cells, rows)) for rows in (own, answer))
    return sorted((ours - theirs).elements()), sorted((theirs - ours).elements())


def cells(row: Any) -> str:
    """Return a row as text: its values with a space between them."""
    if isinstance(row, Mapping):
        row = list(row.values())
    if isinstance(row, list | tuple):
        row = " ".join(map(_cell, row))
    return " ".join(_number(word) for word in str(row).split())


def _cell(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case list() | tuple():
            return "[" + ", ".join(map(_cell, value)) + "]"
        case Decimal():
            return f"{value:f}"
    return str(value)


def _number(word: str) -> str:
    """Return a number's text with `DIGITS` digits, a time's without zeros at its end."""
    if time := SECONDS.fullmatch(word):
        return time[1].removesuffix(".")
    return f"{float(word):.{DIGITS}g}" if NUMBER.fullmatch(word) else word
