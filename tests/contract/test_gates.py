"""What every gate promises: restored between any two calls it reads alike; a row leaves once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import END_NS, READY_ONLY, Batch, GateRead, ReleaseRule
from tests.support.restoring import check_restored_anywhere
from tests.support.rules import rule
from tests.support.told import put

CALLS = 60
SEEDS = range(16)
RULES = (READY_ONLY, rule(0), rule(7), rule(-1), rule(3, hold_ns=9), rule(None, hold_ns=4))


class Case:
    """A gate of some writers, and calls to it, by seed."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 - a draw, not a secret
        mixed = self.chance.random() < 0.3
        self.writers = [Writer(at % 2, at, mixed and at == 0) for at in range(3)]
        self.readers = self.chance.choice([1, 1, 2])
        self.rules = RULES[:4] if self.readers > 1 else RULES
        self.first = self.chance.choice(self.rules)
        self.rows = 0

    def make(self) -> SlackGate:
        keeps = self.readers == 1
        return SlackGate(self.writers, readers=self.readers, rule=self.first, keeps_waits=keeps)

    def calls(self) -> list[Callable[[SlackGate], Any]]:
        chance, made = self.chance, list[Callable[[SlackGate], Any]]()
        reached, now_ns = [0, 0, 0], 0
        for _ in range(CALLS):
            now_ns += chance.randrange(3)
            what = chance.choice(["insert"] * 4 + ["read"] * 3 + ["rule", "idle"])
            writer = chance.randrange(3)
            if what == "insert":
                rows = self._rows_of(writer, reached)
                made.append(_inserts(writer, rows, reached[writer], now_ns))
            elif what == "read":
                reader, limit = chance.randrange(self.readers), chance.choice([1, 3, None])
                made.append(_reads(reader, limit, now_ns))
            elif what == "rule":
                made.append(_sets(chance.choice(self.rules)))
            else:
                made.append(lambda gate, writer=writer: gate.mark_idle(writer))
        made += [_inserts(writer, None, END_NS, now_ns) for writer in range(3)]
        reads = [_reads(reader, 50, now_ns) for reader in range(self.readers)]
        return [*made, *reads * (self.rows + 3)]

    def _rows_of(self, writer: int, reached: list[int]) -> Batch | None:
        count = self.chance.randrange(4)
        gaps = [self.chance.randrange(4) for _ in range(count)]
        times = reached[writer] + np.cumsum(np.array(gaps, dtype=np.int64))
        if not count:
            return None
        reached[writer] = int(times[-1])
        numbers = np.arange(self.rows, self.rows + count)
        self.rows += count
        writers = np.zeros(count, np.int64) if self.writers[writer].is_mixed else None
        return Batch(
            event_time_ns=times, stimulus_time_ns=times, columns={"n": numbers}, writers=writers
        )


def _inserts(writer: int, rows: Batch | None, promise_ns: int, now_ns: int) -> Any:
    return lambda gate: put(gate, writer, rows, promise_ns=promise_ns, came_ns=now_ns)


def _sets(new: ReleaseRule) -> Any:
    return lambda gate: gate.set_rule(new)


def _reads(reader: int, limit: int | None, now_ns: int) -> Any:
    return lambda gate: _plainly(gate.read(reader, limit=limit, now_ns=now_ns))


def _plainly(read: GateRead | None) -> Any:
    if read is None:
        return None
    times = (read.watermark_ns, read.progress.stimulus_ns, read.progress.promise_ns)
    return [list(read.ports), list(read.late), times]


def numbers(came: Any) -> list[int]:
    if not isinstance(came, list):
        return []
    parts = [batch for batches in came[:2] for batch in batches if batch is not None]
    return [n for batch in parts for n in batch.columns["n"].tolist()]


@pytest.mark.parametrize("part", range(2))
def test_a_gate_that_is_restored_between_any_two_calls_reads_the_same(part: int) -> None:
    for seed in SEEDS[part::2]:
        case = Case(seed)
        check_restored_anywhere(case.make, case.calls(), case.chance, who=f"seed {seed}")


def test_each_row_leaves_a_gate_once_to_each_reader_and_then_it_has_ended() -> None:
    for seed in SEEDS:
        case = Case(seed)
        gate = case.make()
        came = [number for call in case.calls() for number in numbers(call(gate))]
        assert sorted(came) == sorted([*range(case.rows)] * case.readers), f"seed {seed}"
        assert gate.is_ended
