"""[probslack] Table 1: what ProbSlack keeps, looks up and takes, for each event."""

from __future__ import annotations

from time import process_time_ns
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.frame import Claim, Options, Result, counted
from benchmarks.probslack.streams import EVENTS, MS, Stream, generated
from benchmarks.probslack.trial import LENGTH_MS, T, extended, paper, range_of, windows_of
from slackwater.runtime.closing.histograms import Histograms
from slackwater.runtime.closing.policy import Closing, ClosingRun
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.probslack_run import ProbSlackRun
from slackwater.runtime.closing.simple import EventDriven
from slackwater.runtime.closing.tables import Tables

AT_ONCE = 2_048
"""Rows in a call, as an aggregate of a busy flow gets them."""
MISS, MOST_US = 0.3, 1.0
STREAMS = ("CB", "BB", "BZ", "ZB", "ZZ")
FREQUENCIES_MS = (5, 20, 40)
KEYS = 100
PAPER = "27 on average, 42 at most; 1.6, 7; with the lazy cache one query a tick, 765 cells a run"
RUNS, QUICK_RUNS = 5, 1


def run(options: Options) -> Result:
    """Measure one type, a hundred types at once, and rows in any order, beside event-driven."""
    runs = QUICK_RUNS if options.quick else RUNS
    streams = {
        f"{name}, f {frequency} ms": (generated(name, options.seed), frequency)
        for name in STREAMS
        for frequency in FREQUENCIES_MS
    }
    result = Result(
        f"{EVENTS:,} events, l {LENGTH_MS / 1000:g} s, δ {MISS}, {AT_ONCE:,} rows a call; mean "
        f"(least–most) over streams and {runs} runs",
        [
            "what",
            "ns of CPU/event",
            "histogram entries",
            "poly-line entries",
            "look-ups/event",
            "cells filled/event",
            "paper",
        ],
    )
    many = _of_types(streams["BB, f 20 ms"][0], KEYS)
    cases: dict[str, tuple[Closing, dict[str, tuple[Stream, int]]]] = {
        "event-driven": (EventDriven(), streams),
        "ProbSlack": (paper(MISS), streams),
        "extended": (extended(MISS), streams),
        "of any order": (ProbSlack(MISS, ordered=False, fit_rows=T), streams),
        f"{KEYS} types": (ProbSlack(MISS, fit_rows=T), {"BB": (many, 20)}),
        "50 events a window": (paper(MISS), {"BB": (streams["BB, f 20 ms"][0], 1_000)}),
    }
    worst: dict[str, float] = {}
    for what, (policy, of) in counted(cases.items(), of=len(cases), what="probslack-cost"):
        took, kept = [], []
        for stream, frequency in of.values():
            for _ in range(runs):
                ns, entries = _measured(policy, stream, frequency)
                took.append(ns)
                kept += entries
        worst[what] = max(took)
        told = [range_of(one) for one in zip(*kept, strict=True)] if kept else ["", ""]
        counts = [_counted(policy, stream, frequency) for stream, frequency in of.values()]
        asked = [range_of(one) if any(one) else "" for one in zip(*counts, strict=True)]
        told_paper = PAPER if what == "ProbSlack" else ""
        result.rows.append([what, range_of(took), *told, *asked, told_paper])
        result.figures[what] = {
            "ns_per_event": range_of(took).to_json(),
            "look_ups_per_event": [round(one[0], 2) for one in counts],
            "cells_per_event": [round(one[1], 2) for one in counts],
        }
    result.claims += [
        Claim(f"{what}: µs for each event, amortised, most", worst[what] / 1_000, "<=", MOST_US)
        for what in cases
        if what != "event-driven"
    ]
    result.notes.append(
        "look-ups: of chances and of poly-lines, in tables; cells filled: of those tables. The "
        "paper counts by simulation, of 2·10⁶ ticks; ours asks for each window and span between "
        "events, not at each tick, so both are given for each event"
    )
    return result


def _measured(
    policy: Closing, stream: Stream, frequency_ms: int
) -> tuple[float, list[tuple[int, int]]]:
    """Return ns for each event, and entries after each of some calls."""
    closing: ClosingRun = policy.begin(windows_of(frequency_ms))
    kept, spent = [], 0
    for begin in range(0, len(stream.types), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        rows = stream.types[part], stream.event_time_ns[part], stream.arrival_ns[part]
        began = process_time_ns()
        closing.observe(*rows)
        closing.closings()
        spent += process_time_ns() - began
        if isinstance(closing, ProbSlackRun) and closing.entries[0]:
            kept.append(closing.entries)
    return spent / len(stream.types), kept


def _counted(policy: Closing, stream: Stream, frequency_ms: int) -> tuple[float, float]:
    """Return look-ups, and cells filled, for each event: a run of its own, which is not timed."""
    look_ups = cells = 0
    chance, ranges, chances = Tables.chance, Tables.ranges, Histograms.chances

    def counted_chance(self: Tables, *asked: Any) -> Any:
        nonlocal look_ups
        look_ups += len(asked[0])
        return chance(self, *asked)

    def counted_ranges(self: Tables, *asked: Any) -> Any:
        nonlocal look_ups
        look_ups += len(asked[1])
        return ranges(self, *asked)

    def counted_chances(self: Histograms, *asked: Any) -> Any:
        nonlocal cells
        made = chances(self, *asked)
        cells += made.size
        return made

    with (
        patch.object(Tables, "chance", counted_chance),
        patch.object(Tables, "ranges", counted_ranges),
        patch.object(Histograms, "chances", counted_chances),
    ):
        _measured(policy, stream, frequency_ms)
    return look_ups / len(stream.types), cells / len(stream.types)


def _of_types(stream: Stream, types: int) -> Stream:
    """Return the rows of so many sources side by side, each like this one, a ms apart."""
    rows = len(stream.types) // types
    event_ns = np.concatenate([stream.event_time_ns[:rows] + one * MS for one in range(types)])
    arrival_ns = np.concatenate([stream.arrival_ns[:rows] + one * MS for one in range(types)])
    order = np.argsort(arrival_ns, kind="stable")
    of_type = np.repeat(np.arange(types), rows)
    seen = of_type[order]
    _, first = np.unique(seen, return_index=True)  # numbered in the order of their first rows
    number = np.argsort(np.argsort(first))
    return Stream(number[seen], event_ns[order], arrival_ns[order])
