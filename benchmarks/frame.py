"""What every benchmark has: its options, its claims, its spread, and the machine that it ran on."""

from __future__ import annotations

import operator
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import psutil

from slackwater.runtime.errors import SlackwaterError

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """How to run. `quick`: under a minute, on the sample that the result states."""

    quick: bool = False
    seed: int = 1

    def seeds(self, full: int, quick: int) -> range:
        """Return so many seeds, from `seed` on: of a full run, or of a quick one."""
        return range(self.seed, self.seed + (quick if self.quick else full))


@dataclass(frozen=True)
class Spread:
    """What several repetitions measured."""

    median: float
    least: float
    most: float
    repetitions: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def __str__(self) -> str:
        if self.repetitions == 1:
            return number(self.median)
        return f"{number(self.median)} ({number(self.least)}–{number(self.most)})"

    def to_json(self) -> dict[str, float]:
        """Return it as plain JSON values."""
        return {
            "median": round(self.median, 4),
            "min": round(self.least, 4),
            "max": round(self.most, 4),
            "repetitions": self.repetitions,
        }


@dataclass(frozen=True)
class Claim:
    """A figure that must hold. The unit is in the name; `rule` is ">=" or "<=".

    Its value is None where it could not be measured: then it does not hold.
    """

    name: str
    value: float | None
    rule: str
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the value keeps the bound."""
        if self.value is None:
            return False
        compare = {">=": operator.ge, "<=": operator.le}[self.rule]
        return bool(compare(self.value, self.bound))

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "OPEN " if self.value is None else "FAILS"
        target = f"(target {self.rule} {number(self.bound)})"
        return f"{verdict}  {self.name}: {self.measured} {target}"

    @property
    def measured(self) -> str:
        """The value for people."""
        return "not measured" if self.value is None else number(self.value)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "name": self.name,
            "value": None if self.value is None else round(self.value, 4),
            "target": f"{self.rule} {self.bound:.4g}",
            "holds": self.holds,
        }


@dataclass
class Result:
    """What a benchmark found.

    Attributes:
        sample: what was run, in a line: sizes, repetitions, where.
        header, rows: the table for people.
        figures: all that was measured, as plain JSON values or `Spread`.
        notes: what a reader must know, a sentence each.
    """

    sample: str
    header: Sequence[str]
    rows: list[Sequence[object]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_json(self, name: str, options: Options) -> dict[str, Any]:
        """Return all of it as plain JSON values."""
        return {
            "benchmark": name,
            "quick": options.quick,
            "seed": options.seed,
            "hardware": hardware(),
            "sample": self.sample,
            "figures": plain(self.figures),
            "notes": self.notes,
            "claims": [claim.to_json() for claim in self.claims],
        }

    def text(self, name: str, options: Options) -> str:
        """Return it for people: where, what, the table, the claims."""
        machine = hardware()
        lines = [
            f"{name}{' --quick' if options.quick else ''}: {self.sample}; seed {options.seed}",
            ", ".join(f"{key} {value}" for key, value in machine.items()),
            "",
            *table(self.header, self.rows),
            "",
            *map(str, self.claims),
            *(f"note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


class NotHereError(SlackwaterError):
    """What a benchmark needs is not on this machine; says what, and how to have it."""


class WrongResultError(Exception):
    """A run gave other results than the offline query: no figure of it counts."""


def check(holds: bool, problem: str) -> None:
    """Raise WrongResultError unless it holds."""
    if not holds:
        raise WrongResultError(problem)


def hardware() -> dict[str, Any]:
    """Return the machine and the versions that figures depend on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "pyarrow", "pyzmq", "ray")},
    }


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return a table as lines of Markdown, its columns aligned."""
    cells = [[number(c) if isinstance(c, float) else str(c) for c in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    ruler = ["-" * width for width in widths]
    return [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in (list(header), ruler, *cells)
    ]


def number(value: float) -> str:
    """Return a figure with three digits that count."""
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4}f}"


def plain(value: Any) -> Any:
    """Return figures as plain JSON values."""
    if isinstance(value, Spread):
        return value.to_json()
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 4)
    return value


def held(name: str, results: Sequence[Result], *, first_seed: int) -> list[str]:
    """Return for each claim of several seeds how many of them it holds on, and its values."""
    of: dict[str, list[Claim]] = {}
    for result in results:
        for claim in result.claims:
            of.setdefault(claim.name, []).append(claim)
    lines = [f"{name}, seeds {first_seed} to {first_seed + len(results) - 1}:"]
    for what, claims in of.items():
        values = ", ".join(claim.measured for claim in claims)
        lines.append(f"holds on {sum(c.holds for c in claims)} of {len(claims)}: {what}: {values}")
    return lines


def counted(things: Iterable[T], *, of: int, what: str) -> Iterator[T]:
    """Pass things on, and say on stderr how many are done: long work is not to look hung.

    One line that changes on a terminal; else a line for each tenth of them.
    """
    for done, thing in enumerate(things, start=1):
        yield thing
        if sys.stderr.isatty():
            print(f"\r{what}: {done} of {of}", end="" if done < of else "\n", file=sys.stderr)
        elif done * 10 // of > (done - 1) * 10 // of:
            print(f"{what}: {done} of {of}", file=sys.stderr, flush=True)


def repeated(times: int, measure: Callable[[], float]) -> Spread:
    """Return the spread of a measurement made so many times, at least 1."""
    return Spread.of([measure() for _ in range(times)])
