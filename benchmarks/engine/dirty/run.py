"""Dirty files: what the readers make of 200 generated files with faults, and of special ones.

```
case ─▶ its input, read to the end ─▶ rows, bad rows, or an error   beside what the case expects
     └▶ the same in the simulator  ─▶ rows, and the ledger
```

A case differs if a row is another, a record is lost or counted twice, or if it is refused in other
words than it expects.
"""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import slackwater as sw
from benchmarks.engine.dirty.cases import NAMES, Case, Row, cases
from benchmarks.engine.dirty.special import special_cases
from benchmarks.frame import Claim, Options, Result, check
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows, Block

CASES, QUICK_CASES = 200, 60
LONGEST_S = 60
"""Seconds after which a case hangs."""


class _Hangs(Exception):
    """A case that does not end."""


def run(options: Options) -> Result:
    """Read all cases, and compare."""
    count = QUICK_CASES if options.quick else CASES
    outcomes: Counter[str] = Counter()
    differ: list[str] = []
    faults, slowest = 0, 0.0
    with TemporaryDirectory() as place:
        folder = Path(place)
        for case in chain(cases(options.seed, count, folder), special_cases(folder)):
            begin = time.monotonic()
            outcome, why = judged(case)
            slowest = max(slowest, time.monotonic() - begin)
            outcomes[outcome] += 1
            faults += case.bad
            if why:
                differ.append(f"{case.name}: {why}")
    total = sum(outcomes.values())
    result = Result(
        f"{total} files, {count} of them drawn, {faults} bad records left out",
        ["outcome", "cases"],
        [[name, number] for name, number in sorted(outcomes.items())],
        figures={"outcomes": dict(outcomes), "slowest_s": slowest, "bad_records": faults},
        notes=[f"differs: {each}"[:600] for each in differ[:10]],
    )
    hangs = outcomes["hangs"]
    result.claims.append(Claim("cases that differ", len(differ) - hangs, "<=", 0))
    result.claims.append(Claim("cases that hang", hangs, "<=", 0))
    result.claims.append(Claim("bad records", faults, ">=", 1))
    return result


def judged(case: Case) -> tuple[str, str]:
    """Return (outcome, why it differs from what the case expects, or nothing)."""
    try:
        with _limit(LONGEST_S):
            rows, bad = _read(case)
            in_flow = _in_flow(case) if _fits_flow(case) else (case.rows, case.bad)
    except _Hangs:
        return "hangs", f"no end after {LONGEST_S} s"
    except SlackwaterError as problem:
        is_expected = case.rows is None and re.search(case.refused, str(problem))
        return ("refused", "") if is_expected else ("differs", f"refused: {problem}")
    except Exception as problem:
        return "differs", repr(problem)
    why = _difference(case, rows, bad)
    if not why and in_flow != (case.rows, case.bad):
        why = f"in a flow {len(in_flow[0] or ())} rows and {in_flow[1]} bad ones"
    return ("differs", why) if why else ("some left out" if bad else "read", "")


def _difference(case: Case, rows: list[Row], bad: int) -> str:
    if case.rows is None:
        return f"read {len(rows)} rows, and had to be refused: {case.refused}"
    if rows != case.rows:
        return _first_difference(rows, case.rows)
    return "" if bad == case.bad else f"{bad} bad records of {case.bad}"


def _read(case: Case) -> tuple[list[Row], int]:
    reader, rows, bad = case.read().open(), list[Row](), 0
    while (polled := reader.poll()) is not END_OF_INPUT:
        assert isinstance(polled, Block)
        if isinstance(polled.rows, BadRows):
            bad += len(polled.rows.rows)
        else:
            rows += polled.rows.to_pylist()
    reader.close()
    return rows, bad


def _fits_flow(case: Case) -> bool:
    return bool(case.rows and list(case.rows[0]) == NAMES)


def _in_flow(case: Case) -> tuple[list[Row], int]:
    """Return rows of the file in a flow, and how many of its records the flow counts as bad."""
    given: Any = case.read()
    flow = sw.Dataflow("dirty")
    stream = flow.source("file", given, event_time="t")
    stream.sink("out", sw.collect_sink())
    if given.on_bad == "divert":
        stream.diverted().sink("bad", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        ledger = job.wait().ledger
        rows = job.result("out").to_pylist()
    check(ledger.is_balanced, f"the ledger does not balance: {ledger}")
    return rows, ledger.entered - len(rows)


def _first_difference(rows: list[Row], expected: list[Row]) -> str:
    for at, (one, other) in enumerate(zip(rows, expected, strict=False)):
        if one != other:
            return f"row {at} is {str(one)[:200]}, and should be {str(other)[:200]}"
    return f"{len(rows)} rows, and should be {len(expected)}"


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def end(*_: object) -> None:
        raise _Hangs

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
