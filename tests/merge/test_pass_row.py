"""A row that passes a gate leaves it as one that was put into it and read: beside the long way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import END_NS, START_NS, Batch, GateRead, Message, ReleaseRule
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from tests.support.examples import five_times
from tests.support.rules import rule
from tests.support.told import message_of

WRITERS = (
    (Writer(0, 0), Writer(1, 1)),
    (Writer(0, 0), Writer(0, 1), Writer(1, 2)),
    (Writer(0, 0, is_mixed=True), Writer(1, 1)),
    (Writer(0, 0, True, True), Writer(0, 1, True, True), Writer(1, 2)),
    (*(Writer(0, rank) for rank in range(18)), Writer(1, 18)),  # so many are kept in arrays
)
RULES = st.builds(rule, st.sampled_from([-1, -1, None, 0, 1, 3]), in_full=st.booleans())
ROWS = st.lists(st.tuples(st.integers(-4, 2), st.integers(0, 2)), max_size=3)  # (offset, its own)
NUMBER = st.integers(0, 18)
ONE = st.tuples(
    st.just("sent"), NUMBER, st.tuples(st.tuples(st.integers(-4, 2), st.integers(0, 2)))
)
SENT = st.tuples(st.just("sent"), NUMBER, ROWS)
PROMISES = st.tuples(st.just("promises"), NUMBER, st.integers(0, 5))
IDLE = st.tuples(st.just("idle"), NUMBER)
RULE = st.tuples(st.just("rule"), RULES)
RESTORE = st.tuples(st.just("restore"))
END = st.tuples(st.just("end"), NUMBER)
MOSTLY_ONE = [ONE] * 8
STEPS = st.lists(
    st.one_of(*MOSTLY_ONE, SENT, PROMISES, IDLE, RULE, RESTORE, END), min_size=10, max_size=60
)


class Feed:
    """Makes the messages of some writers, of rows about as old as each other.

    A writer in order keeps to that, and promises no more than it does; whether rows come behind
    what others have been let go with is up to the rule.
    """

    def __init__(self, writers: tuple[Writer, ...]) -> None:
        self.writers = writers
        self.sent = [START_NS] * len(writers)
        self.promised = [START_NS] * len(writers)
        self.rows = 0

    def message(self, writer: int, offsets: Sequence[tuple[int, int]]) -> Message:
        now = self.rows // 2
        times = [now + offset for offset, _ in offsets]
        if not self.writers[writer].is_mixed:
            times = sorted(max(time, self.sent[writer]) for time in times)
        self.sent[writer] = max([self.sent[writer], *times])
        if now % 3 and not self.writers[writer].is_mixed:
            self.promised[writer] = self.sent[writer]
        batch = self._batch(times, [own for _, own in offsets], writer) if times else None
        self.rows += len(times)
        return message_of(batch, self.promised[writer], self.rows)

    def promise(self, but: int, ahead: int) -> Iterator[tuple[int, Message]]:
        """Yield what all but one promise, who send nothing with it."""
        for writer in {*range(len(self.writers))} - {but % len(self.writers)}:
            self.promised[writer] = max(self.promised[writer], self.rows // 2 - 2 + ahead)
            self.sent[writer] = max(self.sent[writer], self.promised[writer])
            yield writer, message_of(None, self.promised[writer], self.rows)

    def _batch(self, times: list[int], own: list[int], writer: int) -> Batch:
        numbers = self.rows + np.arange(len(times))
        owners = np.array(own) if self.writers[writer].is_shared else None
        return Batch(
            event_time_ns=np.array(times),
            stimulus_time_ns=100 + numbers,
            columns={"number": numbers},
            writers=owners,
        )


def _long(gate: SlackGate, writer: int, message: Message) -> GateRead | None:
    gate.insert(writer, message.batch, message.progress)
    return gate.read(limit=64)


def _short(gate: SlackGate, writer: int, message: Message) -> GateRead | None:
    if message.rows != 1 or not gate.may_pass:
        return _long(gate, writer, message)
    assert message.batch is not None
    return gate.pass_row(writer, message.batch, message.progress)


def _plain_rows(batch: Batch | None) -> Any:
    if batch is None:
        return None
    own = None if batch.writers is None else batch.writers.tolist()
    times = batch.event_time_ns.tolist(), batch.stimulus_time_ns.tolist()
    return *times, batch.columns["number"].tolist(), own


def _plain(read: GateRead | None) -> Any:
    if read is None:
        return None
    told = read.watermark_ns, read.progress.stimulus_ns, read.progress.promise_ns, read.rows
    return list(map(_plain_rows, read.ports)), list(map(_plain_rows, read.late)), *told


def _plainly(state: Any) -> Any:
    match state:
        case Batch():
            return _plain_rows(state)
        case dict():
            return {name: _plainly(own) for name, own in state.items()}
        case list() | tuple():
            return [_plainly(own) for own in state]
    return state


def _state(gate: SlackGate) -> str:
    state = save(gate)
    for reader in state["readers"]:
        reader["lanes"] = _plainly(reader["lanes"])
        reader["late_rows"] = _plainly(reader["late_rows"])
    counts = gate.counts()
    told = counts.ready, counts.slack_ready, counts.late, counts.late_ready, gate.rows_held
    return repr((state, told, gate.use_ns(0), gate.holders(), gate.frontier_ns, gate.ready))


def _restored(gate: SlackGate, writers: tuple[Writer, ...]) -> SlackGate:
    fresh = SlackGate(writers)
    restore(fresh, from_plain(to_plain(save(gate), where="gate")))
    return fresh


@five_times
@given(st.sampled_from(WRITERS), RULES, STEPS)
def test_a_row_passes_as_one_that_was_put_down_and_read(
    writers: tuple[Writer, ...], begun: ReleaseRule, steps: list[Any]
) -> None:
    long, short, feed = (
        SlackGate(writers, rule=begun),
        SlackGate(writers, rule=begun),
        Feed(writers),
    )
    for what, *given_ in steps:
        if what == "restore":
            long, short = _restored(short, writers), _restored(long, writers)
        elif what == "promises":
            for writer, message in feed.promise(*given_):
                assert _plain(_short(short, writer, message)) == _plain(
                    _long(long, writer, message)
                )
        elif what == "rule":
            for gate in (long, short):
                gate.set_rule(given_[0])
        else:
            writer = given_[0] % len(writers)
            if what == "idle":
                for gate in (long, short):
                    gate.mark_idle(writer)
            else:
                ends = what == "end"
                message = message_of(None, END_NS, 0) if ends else feed.message(writer, given_[1])
                assert _plain(_short(short, writer, message)) == _plain(
                    _long(long, writer, message)
                )
        assert _state(short) == _state(long)
