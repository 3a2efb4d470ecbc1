"""Three steps in longer and longer windows: ours, and Flink's CEP."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Result, check
from benchmarks.patterns.on_flink import FlinkCep, Passes
from benchmarks.patterns.plain import Plain
from benchmarks.patterns.queries import Asked
from benchmarks.patterns.timed import Found, million_a_second, tell

OURS, FLINK = "ours", "Flink's CEP"
STEPS = (0, 1, 2)
SHARES = (0.01, 0.01, 1 / 20_000)
"""Of what is `next`: matches wait for the last step, so many, as a window has beginnings."""


@dataclass(frozen=True)
class Growth:
    """A sequence in windows of several lengths.

    Attributes:
        name: for people.
        kinds: of the events, an array.
        rule: "first": the first match leaves and uses its events up; "next": each event of a match
            is the next of its kind, and all matches leave.
        rates: {who: {events of the window: million events a second}}.
    """

    name: str
    kinds: np.ndarray[tuple[int], np.dtype[np.int64]]
    rule: Literal["first", "next"]
    rates: dict[str, dict[int, float]] = field(default_factory=dict)

    def asked(self, length: int, events: int | None = None) -> Asked:
        """Return it in windows of a length, over the first events."""
        kinds = self.kinds[:events]
        numbers = np.arange(len(kinds))
        rows = pa.table({"time": numbers * 1_000, "kind": kinds})
        opens = kinds == STEPS[0]
        plain = pa.table({"time": numbers, "kind": kinds, "sign": opens * 0 + 1, "opens": opens})
        build = partial(_built, length=length, rule=self.rule)
        return Asked(self.name, rows, build, Plain(plain, length, steps=STEPS[1:]))


def of_types(name: str, events: int, types: int, *, seed: int) -> Growth:
    """Return three of some types, all as frequent."""
    return Growth(name, np.random.default_rng(seed).integers(0, types, events), "first")


def with_rare_end(name: str, events: int, *, seed: int) -> Growth:
    """Return three of which the last is rare; each of a match is the next of its kind."""
    drawn = np.random.default_rng(seed).random(events)
    return Growth(name, np.searchsorted(np.cumsum(SHARES), drawn, side="right"), "next")


def tell_ours(result: Result, growth: Growth, length: int, times: int) -> None:
    """Measure ours, and add a row."""
    rate, matches = million_a_second(growth.asked(length), times)
    _tell(result, growth, OURS, length, Found(len(growth.kinds), rate, matches))


def tell_flink(result: Result, growth: Growth, length: int, flink: FlinkCep, how: Passes) -> None:
    """Measure Flink's CEP, and add a row."""
    plain = growth.asked(length).plain
    assert plain is not None
    took = flink.run(plain, how)
    _same(growth, FLINK, length, took.events, took.windows)
    _tell(result, growth, FLINK, length, Found(took.events, took.rate, took.windows))


def tell_feed(result: Result, growth: Growth, flink: FlinkCep, how: Passes) -> None:
    """Measure Flink's flow without the pattern, and add a row: it is not taken off."""
    plain = growth.asked(1).plain
    assert plain is not None
    took = flink.run(plain, how, pattern=False)
    tell(result, "the same flow without a pattern", FLINK, Found(took.events, took.rate, None))


def _tell(result: Result, growth: Growth, who: str, length: int, found: Found) -> None:
    growth.rates.setdefault(who, {})[length] = found.rate.median
    tell(result, f"{growth.name}, {length:,} events", who, found)


def _same(growth: Growth, who: str, length: int, events: int, matches: int) -> None:
    """Check that ours finds as many in the same events."""
    _, ours = million_a_second(growth.asked(length, events), 1)
    problem = f"{growth.name}, {length:,} events: {who} finds {matches} matches, ours {ours}"
    check(ours == matches, problem)


def _built(
    stream: sw.Stream,
    shed: sw.shedding.EventShedding | None,
    *,
    length: int,
    rule: Literal["first", "next"],
) -> sw.Stream:
    pattern = sw.patterns.seq(
        *(sw.patterns.event(name, of_type=kind) for kind, name in enumerate("abc"))
    )
    if rule == "first":
        return stream.pattern(pattern, type="kind", within=length, shed=shed)
    return stream.pattern(
        pattern,
        type="kind",
        within=length,
        skip="next",
        selection="each",
        consumption="zero",
        shed=shed,
    )
