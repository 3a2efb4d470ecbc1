"""Replicas behind one gate: together they do what one operator does, each with its share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import FrameError
from slackwater.runtime.merge import ReadSplitter, ReplicaReads
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    GateRead,
    Message,
    Progress,
    ReadTag,
    batch_of,
    concat_batches,
)
from slackwater.runtime.model.hashes import even_groups, key_hashes, owners
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.operators.join.machine import JoinMachine
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.plan.traits import Replica, Share
from slackwater.runtime.registry.operators import make_operator
from tests.contract.test_operators import AGGREGATE, CHOSEN, JOIN, QUANTILES, ROWS, VALUES
from tests.operators.literal import Leaves, Segment, leaves_of, reads_of, run, streams
from tests.support.chance import chance
from tests.support.examples import a_third
from tests.support.told import gate_read, message_of

TEXT_JOIN = replace(JOIN, left_on=("line", "area"), right_on=("line", "area"))
CASES: list[tuple[JoinStep | AggregateStep, Share]] = [
    (JOIN, "keys"),
    (JOIN, "all"),
    (replace(JOIN, left_on=(), right_on=()), "all"),
    (TEXT_JOIN, "keys"),
    (TEXT_JOIN, "all"),
    (AGGREGATE, "keys"),
    (QUANTILES, "keys"),
    (CHOSEN, "keys"),
]
every_case = pytest.mark.parametrize(("step", "share"), CASES)


def keys_of(step: JoinStep | AggregateStep) -> list[tuple[str, ...]]:
    return [step.left_on, step.right_on] if isinstance(step, JoinStep) else [step.keys]


def drawn(data: st.DataObject, ports: int) -> list[Segment]:
    """Draw a stream as a gate releases it: in the order (event time, port) over all reads too."""
    segments, last = [], (START_NS, 0)
    for segment in data.draw(streams([VALUES] * ports)):
        rows = [row for row in segment.rows if (row.time, row.port) >= last]
        last = max([last, *((row.time, row.port) for row in rows)])
        segments.append(replace(segment, rows=rows))
    return segments


@dataclass
class Worked:
    """What one replica did."""

    leaves: Leaves
    operator: Operator
    promises_ns: list[int]


def parts(reads: Iterator[GateRead], splitter: ReadSplitter) -> list[list[tuple[int, Message]]]:
    """Return what each replica is sent, some messages in halves."""
    sent: list[list[tuple[int, Message]]] = []
    for released in reads:
        outputs = splitter.split(released)
        sent = sent or [[] for _ in outputs]
        for own, hand in zip(sent, outputs, strict=True):
            for port, message in hand:
                is_long = message.rows > 3
                halves = (
                    message.split(message.rows // 2, Progress(START_NS, 0))
                    if is_long
                    else (message,)
                )
                own += [(port, half) for half in halves]
    return sent


def work(operator: Operator, sent: Sequence[tuple[int, Message]], cut: Random) -> Worked:
    """Deliver in any interleaving of the channels; read whenever, as much as one likes."""
    ports = 1 + max(port for port, _ in sent)
    reads = ReplicaReads(ports)
    channels = [[message for to, message in sent if to == port] for port in range(ports)]
    results, promises_ns = [], []
    while any(channels) or reads.has_more:
        port = cut.randrange(ports)
        if channels[port]:
            reads.insert(port, channels[port].pop(0))
        while cut.random() < 0.5 and reads.has_more:
            if cut.random() < 0.2:
                again = ReplicaReads(ports)
                restore(again, save(reads))
                reads = again
            released = reads.read(limit=cut.randint(1, 9))
            assert released is not None
            results.append(operator.work(released, now_ns=0).rows)
            promises_ns.append(reads.promise_ns)
    assert reads.read(limit=9) is None
    assert reads.rows_held == 0
    assert reads.ready + reads.late == sum(message.rows for _, message in sent)
    return Worked(leaves_of(results), operator, promises_ns)


def replicas_of(
    step: JoinStep | AggregateStep, share: Share, of: int, reads: Iterator[GateRead], cut: Random
) -> list[Worked]:
    splitter = ReadSplitter(keys_of(step), replicas=of, share=share)
    made = [make_operator(replace(step, replica=Replica(n, of, share))) for n in range(of)]
    sent = parts(reads, splitter)
    return [work(operator, own, cut) for operator, own in zip(made, sent, strict=True)]


@every_case
@a_third
@given(data=st.data(), of=st.integers(2, 5), cut=chance)
def test_replicas_find_together_what_one_operator_finds_nothing_twice(
    step: Any, share: Share, data: st.DataObject, of: int, cut: Random
) -> None:
    schemas = [ROWS] * len(keys_of(step))
    segments = drawn(data, len(schemas))
    alone = make_operator(step)
    expected = run(alone, reads_of(segments, schemas))
    found = replicas_of(step, share, of, reads_of(segments, schemas), cut)
    assert sorted(row for own in found for row in own.leaves) == sorted(expected)
    dropped = [own.operator.late_dropped for own in found]
    if share == "all":  # each sees every row, and decides alike
        assert dropped == [alone.late_dropped] * of
    else:
        assert sum(dropped) == alone.late_dropped
    if isinstance(alone, JoinMachine):
        compared = sum(own.operator.comparisons for own in found)  # type: ignore[attr-defined]
        assert compared == alone.comparisons
    assert all(own.operator.rows_held == 0 for own in found)


@every_case
@a_third
@given(data=st.data(), cut=chance, again=chance)
def test_a_replica_gives_the_same_rows_in_the_same_order_however_its_messages_come(
    step: Any, share: Share, data: st.DataObject, cut: Random, again: Random
) -> None:
    schemas = [ROWS] * len(keys_of(step))
    segments = drawn(data, len(schemas))
    first = replicas_of(step, share, 3, reads_of(segments, schemas), cut)
    second = replicas_of(step, share, 3, reads_of(segments, schemas), again)
    for one, other in zip(first, second, strict=True):
        assert one.leaves == other.leaves


@every_case
@a_third
@given(data=st.data(), cut=chance)
def test_a_replica_promises_no_more_than_its_gate_said_however_far_the_watermark_is(
    step: Any, share: Share, data: st.DataObject, cut: Random
) -> None:
    schemas = [ROWS] * len(keys_of(step))
    segments = [replace(segment, frontier=START_NS) for segment in drawn(data, len(schemas))]
    for own in replicas_of(step, share, 2, reads_of(segments, schemas), cut):
        *before, last = own.promises_ns
        assert set(before) <= {START_NS, END_NS}
        assert last == END_NS


@given(data=st.data(), of=st.integers(1, 4))
def test_rows_held_are_shared_out_evenly_over_the_replicas_of_a_join_of_all(
    data: st.DataObject, of: int
) -> None:
    times = sorted(data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=60)))
    batch = batch_of(times, {"area": [1] * len(times), "line": ["20"] * len(times)})
    batch = Batch.like(batch, {**batch.columns, "delay": np.ones(len(times))})
    step = replace(JOIN, within_ns=1_000)
    held = []
    for n in range(of):
        operator = make_operator(replace(step, replica=Replica(n, of, "all")))
        operator.work(gate_read([batch, None], [None, None], times[-1], 0, times[-1]), now_ns=0)
        held.append(operator.rows_held)
    assert sum(held) == len(times)
    assert max(held) - min(held) <= 1


NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(NUMBERS, min_size=1), st.integers(1, 9))
def test_equal_keys_have_one_owner_whatever_their_type_and_company(
    values: list[int], replicas: int
) -> None:
    together = owners(key_hashes([np.array(values)], len(values)), even_groups(replicas))
    assert set(together.tolist()) <= set(range(replicas))
    small = [value for value in values if abs(value) < 2**31]
    alone = [
        owners(key_hashes([np.array([v], np.int32)], 1), even_groups(replicas)).item()
        for v in small
    ]
    assert alone == [own for v, own in zip(values, together.tolist(), strict=True) if v in small]


def test_owners_are_the_same_in_another_process() -> None:
    code = (
        "import pyarrow as pa, numpy as np\n"
        "from slackwater.runtime.model.hashes import even_groups, key_hashes, owners\n"
        "texts = pa.array([f'line {n}' for n in range(50)] + [None])\n"
        "print(owners(key_hashes([texts, np.arange(51)], 51), even_groups(4)).tolist())\n"
    )
    texts = pa.array([f"line {n}" for n in range(50)] + [None])
    here = owners(key_hashes([texts, np.arange(51)], 51), even_groups(4)).tolist()
    there = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert there.stdout.strip() == str(here)


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_neighbouring_keys_are_spread_evenly(replicas: int) -> None:
    for column in (np.arange(8_000), np.arange(8_000) * 1024, pa.array(map(str, range(8_000)))):
        own = owners(key_hashes([column], 8_000), even_groups(replicas))
        assert own.dtype == np.uint8, "NumPy sorts it by radix"
        counts = np.bincount(own, minlength=replicas)
        assert counts.min() > 0.9 * 8_000 / replicas


def test_a_long_read_is_worked_off_in_parts_that_keep_the_order_over_both_ports() -> None:
    reads = ReplicaReads(2)
    splitter = ReadSplitter([("key",), ("key",)], replicas=1, share="keys")
    left = batch_of([1, 3, 5, 7], {"key": [1] * 4})
    right = batch_of([2, 3, 6, 8], {"key": [1] * 4})
    hand = splitter.split(gate_read([left, right], [None, None], 9, 4, 8))[0]
    for port, message in hand:
        reads.insert(port, message)
    found, watermarks, promises = [], [], []
    while (released := reads.read(limit=3)) is not None:
        batches = [batch for batch in released.ports if batch is not None]
        found.append(sorted(concat_batches(batches).event_time_ns.tolist()))
        watermarks.append(released.watermark_ns)
        promises.append(reads.promise_ns)
    assert found == [[1, 2], [3, 3, 5], [6, 7, 8]]
    assert watermarks == [3, 6, 9]
    assert promises == [3, 6, 8]


def test_a_message_that_says_nothing_of_its_read_is_refused() -> None:
    with pytest.raises(FrameError, match="says nothing of the read"):
        ReplicaReads(1).insert(0, message_of(None, 1, 1))


def test_two_halves_of_a_message_mean_the_same_as_the_message() -> None:
    message = message_of(batch_of(range(9), {"n": range(9)}), 50, 60, ReadTag(3, 12, 6, 70))
    first, second = message.split(message.rows // 2, Progress(1, 2))
    assert first.tag == ReadTag(3, 12, 4, 70)
    assert second.tag == ReadTag(3, 12, 2, 70)
    assert (first.progress.promise_ns, first.progress.stimulus_ns) == (1, 2)
    assert (second.progress.promise_ns, second.progress.stimulus_ns) == (50, 60)
    halves = [half.batch for half in (first, second) if half.batch is not None]
    assert concat_batches(halves).columns["n"].tolist() == list(range(9))
