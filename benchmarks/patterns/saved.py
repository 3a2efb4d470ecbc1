"""What dropping saves in our operator: events from all windows, or pairs of events and windows.

CPU time of the operator alone on Q1 to Q4 of [espice], while a given share of what work is counted
in is dropped, and which matches are left, beside those of a run that drops nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

import slackwater as sw
from benchmarks.frame import Options, Result, Spread, repeated
from benchmarks.patterns.queries import Asked, query_1, query_2, query_3, query_4
from benchmarks.patterns.timed import reads_of
from slackwater.runtime.model import Batch, GateRead
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.patterns.operator.machine import pattern_machine
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.wrapper.shed_pattern import SheddingPattern

SHARES, QUICK_SHARES = (0.15, 0.3, 0.5, 0.7, 0.9), (0.3, 0.7)
TIMES, QUICK_TIMES = 3, 1
READ = 4_096
"""Rows of a read: as a slot under load gives them."""
TRAINED = 0.4
"""Of the events, those that come before anything is dropped."""
Match = tuple[int, str]
"""The start of its window in ns, and its events."""


def run(options: Options) -> Result:
    """Time the operator with and without dropping."""
    times = QUICK_TIMES if options.quick else TIMES
    seed = options.seed
    result = Result(
        f"the operator alone, reads of {READ:,} rows, one process; the first {TRAINED:.0%} of the "
        f"events without dropping; {times} runs each",
        ["query", "dropped", "share", "µs an event", "events shed, %", "recall, %", "false, %"],
    )
    for asked in (query_1(), query_2(seed), query_3(seed), query_4(seed)):
        reads = reads_of(asked.rows, READ)
        spread, truth, _ = timed(asked, reads, None, None, times)
        _tell(result, asked.name, "nothing, no shed=", None, spread, 0.0, truth, truth)
        watching = sw.shedding.espice("1000h", seed=seed)
        spread, found, _ = timed(asked, reads, watching, None, times)
        _tell(result, asked.name, "nothing, stretches watched", None, spread, 0.0, truth, found)
        for drops in ("events", "pairs"):
            shed = sw.shedding.espice("1000h", drops=drops, seed=seed)
            spread, found, _ = timed(asked, reads, shed, None, times)
            _tell(result, asked.name, f"nothing, {drops} watched", None, spread, 0.0, truth, found)
            for share in QUICK_SHARES if options.quick else SHARES:
                spread, found, gone = timed(asked, reads, shed, share, times)
                _tell(result, asked.name, drops, share, spread, gone, truth, found)
    return result


def timed(
    asked: Asked,
    reads: list[GateRead],
    shed: sw.shedding.EventShedding | None,
    share: float | None,
    times: int,
) -> tuple[Spread, set[Match], float]:
    """Return µs an event, the matches of windows that open when something goes, and events shed."""
    found: set[Match] = set()
    gone: list[float] = []

    def once() -> float:
        step = replace(asked.step(), shed=shed)
        machine = pattern_machine(step, most_kept_rows=10**9)
        spent_ns, matches, shed_share = _run(machine, reads, share)
        found.clear()
        found.update(matches)
        gone.append(shed_share)
        return spent_ns / 1e3

    return repeated(times, once), found, gone[-1]


def _run(
    machine: Operator, reads: list[GateRead], share: float | None
) -> tuple[float, set[Match], float]:
    first = round(len(reads) * TRAINED)
    for read in reads[:first]:
        machine.work(read, 0)
    begin_ns, shed, events, matches = _start_ns(reads[first]), _shed(machine), 0, []
    began_ns = time.process_time_ns()
    for read in reads[first:]:
        if share is not None:
            assert isinstance(machine, SheddingPattern)
            machine._shedding._shedding.shedder.aim(Amount(share))
        made = machine.work(read, 0).rows
        if made is not None:
            matches.append(made)
        events += 0 if read.ports[0] is None else len(read.ports[0])
    spent_ns = (time.process_time_ns() - began_ns) / events
    found = {one for some in matches for one in _matches(some) if one[0] >= begin_ns}
    return spent_ns, found, (_shed(machine) - shed) / events


def _shed(machine: Operator) -> int:
    return int(machine.counts().get("shed", 0))


def _start_ns(read: GateRead) -> int:
    rows = read.ports[0]
    assert rows is not None
    return int(rows.event_time_ns[0])


def _matches(made: Batch) -> list[Match]:
    starts = np.asarray(made.columns["window_start"]).astype(np.int64).tolist()
    return list(zip(starts, made.columns["events"].tolist(), strict=True))


def _tell(
    result: Result,
    query: str,
    what: str,
    share: float | None,
    spread: Spread,
    gone: float,
    truth: set[Match],
    found: set[Match],
) -> None:
    recall = 100 * len(found & truth) / max(len(truth), 1)
    false = 100 * len(found - truth) / max(len(truth), 1)
    of = "" if share is None else f"{100 * share:.0f} %"
    row: list[object] = [query, what, of, spread, f"{100 * gone:.1f}"]
    result.rows.append([*row, f"{recall:.1f}", f"{false:.1f}"])
    told = {"us": spread, "shed": gone, "recall": recall / 100, "false": false / 100}
    result.figures[f"{query}, {what} {of}".strip()] = told
