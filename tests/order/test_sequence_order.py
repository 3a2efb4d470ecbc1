"""However rows are cut, they leave as the plain source lets them, step by step."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model import START_NS, batch_of
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.order.newest import newest_before
from slackwater.runtime.order.sequence import BySequence
from slackwater.runtime.order.sequence_order import NumberedRows, SequenceOrder
from tests.order.plain_sequence import PlainSequence, Row

_LAST_INT64 = 2**63 - 1
Case = tuple[BySequence, bool, list[Row], int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    policy = BySequence(
        timeout_ns=draw(st.sampled_from([1, 9, 40])),
        alpha=draw(st.sampled_from([0.0, 0.6])),
        beta=draw(st.sampled_from([0.3, 0.6])),
        late=draw(st.sampled_from(["drop", "pass"])),
        restart=draw(st.sampled_from(["first", "added"])),
        first=draw(st.sampled_from([None, None, 0, 2, 6])),
        merge=draw(st.booleans()),
        silent_ns=draw(st.sampled_from([None, None, 12])),
        learns_from_late=draw(st.booleans()),
        farthest=draw(st.sampled_from([6, 1000])),
        wraps=draw(st.sampled_from([None, None, 3, 8])),
    )
    has_writers = draw(st.booleans())
    rows = rows_at_random(draw, 3 if has_writers else 1)
    if policy.wraps is not None:
        start = draw(st.integers(0, policy.numbers - 1))
        rows = [replace(row, number=(row.number + start) % policy.numbers) for row in rows]
    return policy, has_writers, rows, draw(st.integers(0, 2**32))


def rows_at_random(draw: st.DrawFn, writers: int) -> list[Row]:
    """Each writer counts on; rows are lost, repeated, shuffled, and numbered anew."""
    sent: list[tuple[float, int, int, int]] = []  # when it comes, writer, number, event time
    chance = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - a draw, not a secret
    wild = draw(st.sampled_from([0.0, 0.1, 0.4]))
    tick = draw(st.sampled_from([1, 1, 20]))  # of the clocks that stamp events
    for writer in range(writers):
        number, at = chance.choice([0, 0, 5]), 0
        for _ in range(draw(st.integers(0, 14))):
            at += chance.choice([1, 3, 4, 4, 30])
            clock = at + (chance.choice([-40, 60]) if chance.random() < wild / 4 else 0)
            for _ in range(2 if chance.random() < wild / 2 else 1):
                delay = chance.choice([0, 5, 15, 60]) if chance.random() < wild else 0
                if chance.random() > wild / 3:
                    come = at + delay + chance.random() / 2
                    sent.append((come, writer, number, clock // tick * tick))
            number += 1
            if chance.random() < wild / 4:
                number = chance.choice([0, 1, number + 3, number + 50])
    rows, clock_ns, names = [], 0, {}
    newest = [START_NS] * writers
    for came, writer, number, event in sorted(sent):
        clock_ns = max(clock_ns, int(came))
        name = names.setdefault(writer, len(names))
        rows.append(Row(name, number, event, clock_ns, newest[name]))
        newest[name] = max(newest[name], event)
    return rows


def plain(case: Case) -> PlainSequence:
    policy, has_writers, rows, _ = case
    writers = max([row.writer for row in rows], default=0) + 1
    made = PlainSequence(policy, writers=writers, has_writers=has_writers)
    for row in rows:
        made.take(replace(row))
    made.finish(rows[-1].clock_ns if rows else 0)
    return made


def cut(case: Case, seed: int) -> tuple[list[tuple[int, int, list[int]]], dict[str, int]]:
    """Take the rows in pieces, and begin anew from a snapshot now and then."""
    policy, has_writers, rows, _ = case
    chance = random.Random(seed)  # noqa: S311 - a draw, not a secret
    order = SequenceOrder(policy, has_writers=has_writers)
    steps: list[tuple[int, int, list[int]]] = []
    counts = dict.fromkeys(["late", "late_dropped", "duplicates", "given_up", "renumbered"], 0)

    def tell(made: Any) -> None:
        for at in range(len(made)):
            left = made.batch.columns["row"][made.leaves[at] : made.leaves[at + 1]].tolist()
            steps.append((int(made.time_ns[at]), int(made.promised_ns[at]), left))
        for word, up_to in made.counts.items():
            counts[word] += int(up_to[-1])

    start = 0
    while start < len(rows):
        stop = min(len(rows), start + chance.choice([1, 2, 5, 40]))
        piece = rows[start:stop]
        batch = batch_of([row.event_ns for row in piece], {"row": list(range(start, stop))})
        told = [
            np.array([getattr(row, name) for row in piece])
            for name in ("writer", "number", "clock_ns", "newest_ns")
        ]
        given_rows = NumberedRows(batch, told[0] if has_writers else None, *told[1:])
        tell(order.extend(given_rows, until_ns=piece[-1].clock_ns))
        if chance.random() < 0.3:
            state = save(order)
            order = SequenceOrder(policy, has_writers=has_writers)
            restore(order, state)
        start = stop
    if order.rows_held:
        nothing = batch_of([], {"row": np.empty(0, dtype=np.int64)})
        tell(order.extend(nothing, until_ns=rows[-1].clock_ns, is_end=True))
    assert order.rows_held == 0
    return steps, counts


@given(cases())
def test_any_cut_gives_the_steps_of_the_plain_source(case: Case) -> None:
    expected = plain(case)
    for seed in (case[3], case[3] + 1):
        steps, counts = cut(case, seed)
        assert counts == expected.counts
        assert steps == expected.steps


@given(cases())
def test_every_row_leaves_or_is_counted_and_those_in_time_leave_in_order(case: Case) -> None:
    policy, has_writers, rows, seed = case
    steps, counts = cut(case, seed)
    left = [at for _, _, step in steps for at in step]
    assert len(left) == len(set(left))
    assert len(rows) == len(left) + counts["late_dropped"] + counts["duplicates"]
    if policy.passes_late:
        return
    newest = newest_before(
        np.array([rows[at].writer for at in left], dtype=np.int64),
        np.array([rows[at].event_ns for at in left], dtype=np.int64),
        np.full(3, START_NS),
    )
    assert all(rows[at].event_ns >= before for at, before in zip(left, newest, strict=True))
    if policy.merge or not has_writers:
        assert [rows[at].event_ns for at in left] == sorted(rows[at].event_ns for at in left)
    elif counts["renumbered"] == 0 and policy.wraps is None:
        for writer in range(3):
            numbers = [rows[at].number for at in left if rows[at].writer == writer]
            assert numbers == sorted(set(numbers))


@given(cases(), st.integers(0, 1023))
def test_numbers_that_wrap_give_the_steps_of_those_that_go_on(case: Case, start: int) -> None:
    policy, has_writers, rows, seed = case
    plain_policy = replace(policy, first=None, farthest=300, wraps=None)
    going_on = [replace(row, number=row.number + start) for row in rows]
    wrapped = [replace(row, number=row.number % 1024) for row in going_on]
    expected = cut((plain_policy, has_writers, going_on, seed), seed)
    assert cut((replace(plain_policy, wraps=10), has_writers, wrapped, seed), seed) == expected


@given(st.data())
def test_rows_within_reach_of_the_first_leave_by_number_in_any_order_of_arrival(
    data: st.DataObject,
) -> None:
    wraps = data.draw(st.sampled_from([None, 2, 3, 8, 16, 32, 62]))
    longest_ns = 1_000_000
    policy = BySequence(timeout_ns=longest_ns, least_ns=longest_ns, wraps=wraps)
    near_end = st.integers(1, 130).map(lambda back: max(policy.numbers - back, 0))
    first = data.draw(near_end | st.integers(0, policy.numbers - 1))
    offsets = data.draw(
        st.lists(st.integers(0, policy.reach - 1), unique=True, min_size=1, max_size=20)
        | st.permutations(range(min(policy.reach, 20)))
    )
    policy = replace(policy, first=first)
    rows, newest_ns = [], START_NS
    for clock_ns, offset in enumerate(offsets):
        number = policy.in_column(first + offset)
        if number > _LAST_INT64:
            return
        rows.append(Row(0, number, offset, clock_ns, newest_ns))
        newest_ns = max(newest_ns, offset)
    steps, counts = cut((policy, data.draw(st.booleans()), rows, 0), len(rows))
    left = [rows[at].event_ns for _, _, step in steps for at in step]
    assert left == sorted(offsets)
    assert counts.pop("given_up") == max(offsets) + 1 - len(offsets)
    assert not any(counts.values())
