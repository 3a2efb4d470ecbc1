"""Flink's CEP on a plain query, where it is installed: see docs/benchmarks/patterns.md."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.flink import JVM, Flink, flink, output_of
from benchmarks.frame import Spread
from benchmarks.patterns.plain import Plain

PROGRAM = Path(__file__).parent / "flink" / "PatternSpeed.java"
READ = 100
"""Rows between two watermarks. Of 10, 30, 100, 300, 1,000 and 10,000 this takes the least CPU time:
Flink sorts what waits for a watermark, and has a timer for each event."""
MEMORY = ("-Xmx2g", "-XX:+UseParallelGC")
"""Of three collectors that with the least CPU time here."""


@dataclass(frozen=True)
class Passes:
    """How to run: warm up for so long, then so many passes, each cut short at a limit."""

    warm_s: float
    count: int
    limit_s: float


@dataclass(frozen=True)
class Took:
    """What came of it.

    Attributes:
        events: of a pass: the fewest of them, where they were cut short.
        rate: million events a second of CPU time, of all threads.
        matches: of the first events; an alternative each.
        windows: that have one.
    """

    events: int
    rate: Spread
    matches: int
    windows: int


class FlinkCep(Flink):
    """Flink's CEP, ready to run."""

    def run(self, plain: Plain, how: Passes, *, pattern: bool = True) -> Took:
        """Return what a query takes; `pattern`: else the same flow without it."""
        asked = ("any" if plain.count else "steps") if pattern else "none"
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "rows"
            plain.save(data)
            options = {
                "data": data,
                "asked": asked,
                "count": plain.count,
                "steps": ",".join(map(str, plain.steps)),
                "signs": ",".join(map(str, plain.signs)),
                "within": plain.within,
                "read": READ,
                "warm_s": how.warm_s,
                "passes": how.count,
                "limit_s": how.limit_s,
            }
            given = [f"{name}={value}" for name, value in options.items()]
            out = output_of(
                [str(self.java), *MEMORY, *JVM, "-cp", self.classes, PROGRAM.stem, *given]
            )
        told = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        least = min(told, key=lambda one: one["events"])
        spent = [
            one["events"] / max(one["cpu_s"], 0.01) / 1e6 for one in told
        ]  # it counts in 10 ms
        return Took(least["events"], Spread.of(spent), least["matches"], least["windows"])


@contextmanager
def flink_cep() -> Iterator[FlinkCep]:
    """Find Flink and compile the program.

    Raises:
        NoFlink: there is none, or no Java for it.
    """
    with flink(PROGRAM) as own:
        yield FlinkCep(own.version, own.java, own.classes)
