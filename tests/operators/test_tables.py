"""Tables: all changes applied give the batch answer, at the end and at each time before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import END_NS, READY_ONLY, Batch
from slackwater.runtime.model.row_marks import RETRACTED, REVISED
from slackwater.runtime.model.schema import column_of_arrow
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.operators.join.how import How
from slackwater.runtime.operators.join.table_join import TableJoinStep
from slackwater.runtime.operators.to_table.step import ToTableStep
from slackwater.runtime.plan.step import Step
from slackwater.runtime.registry.operators import make_operator
from tests.support.chance import chance
from tests.support.told import gate_read

OLD = RETRACTED.bit | REVISED.bit
ROWS = pa.schema({"k": pa.int64(), "v": pa.string()})
PAIRS = pa.schema({"k": pa.int64(), "v": pa.string(), "w": pa.string()})
Values = tuple[Any, ...]
Change = tuple[int, int, int, Values]  # (event time, port, marks, values)


def table_join(how: How, **settings: Any) -> TableJoinStep:
    return TableJoinStep(
        name="pairs",
        inputs=("left", "right"),
        schema=ROWS if how in ("semi", "anti") else PAIRS,
        left_on=("k",),
        right_on=("k",),
        where=None,
        right_names={"v": "w"},
        retracts=(True, True),
        how=how,
        release=READY_ONLY,
        **settings,
    )


TO_TABLE = ToTableStep(name="table", inputs=("rows",), schema=ROWS, keys=("k",), release=READY_ONLY)


def changelog(draw: Random, ports: int, *, keyed: bool = False) -> list[Change]:
    """Return changes of tables: each takes out only rows that are there.

    Args:
        draw: chance.
        ports: the number of tables.
        keyed: whether a key has one row at most; then updates come without old halves.
    """
    there: list[list[Values]] = [[] for _ in range(ports)]
    changes: list[Change] = []
    time = 0
    for _ in range(draw.randint(1, 40)):
        time += draw.choice([0, 1, 1, 3])
        port = draw.randrange(ports)
        own = there[port]
        new = (draw.choice([1, 1, 2, None]), draw.choice("ab") if draw.random() < 0.9 else None)
        known = [row for row in own if row[0] == new[0]] if keyed else own
        if not known or (not keyed and draw.random() < 0.5):
            changes.append((time, port, 0, new))
            own.append(new)
            continue
        old = draw.choice(known)
        own.remove(old)
        if draw.random() < 0.4:
            changes.append((time, port, RETRACTED.bit, old))
            continue
        own.append(new)
        changes += [(time, port, OLD, old)] * (not keyed) + [(time, port, REVISED.bit, new)]
    return sorted(changes, key=lambda change: change[:2])


def rows_of(changes: Sequence[Change], schema: pa.Schema = ROWS) -> Batch | None:
    if not changes:
        return None
    columns = {
        field.name: column_of_arrow(pa.array([row[3][at] for row in changes], field.type))
        for at, field in enumerate(schema)
    }
    marks = np.array([row[2] for row in changes], dtype=np.uint8)
    times = np.array([row[0] for row in changes])
    return Batch(
        event_time_ns=times,
        stimulus_time_ns=times,
        columns=columns,
        marks=marks if marks.any() else None,
    )


def results(
    step: Step, changes: Sequence[Change], ports: int, cut: Random, **options: Any
) -> Iterator[Change]:
    """Yield what an operator makes of changes, in any cuts, restored now and then."""
    operator: Operator = make_operator(step, **options)
    start = 0
    while start <= len(changes):
        stop = start + cut.randint(1, 9)
        some = changes[start:stop]
        is_end = stop > len(changes)
        promise = END_NS if is_end else changes[stop - 1][0]
        sides = [rows_of([row for row in some if row[1] == port]) for port in range(ports)]
        nothing: list[Batch | None] = [None] * ports
        newest_ns = max([row[0] for row in changes[:stop]])
        read = gate_read(sides, nothing, promise, 0, promise, newest_ns=newest_ns)
        rows = operator.work(read, 0).rows
        if rows is not None:
            marks = [0] * len(rows) if rows.marks is None else rows.marks.tolist()
            values = zip(*(column.tolist() for column in rows.columns.values()), strict=True)
            times = rows.event_time_ns.tolist()
            yield from ((t, 0, m, row) for t, m, row in zip(times, marks, values, strict=True))
        start = stop
        if cut.random() < 0.3:
            saved, operator = save(operator), make_operator(step, **options)
            restore(operator, saved)
    assert operator.rows_held == 0


def applied(changes: Sequence[Change]) -> Counter[Values]:
    """Return a table after changes, in which no row was taken out that was not there."""
    table: Counter[Values] = Counter()
    for at, (time, _, marks, row) in enumerate(changes):
        table[row] += -1 if marks & RETRACTED.bit else 1
        assert table[row] >= 0
        if marks == OLD:  # its new half follows
            assert changes[at + 1][0] == time
            assert changes[at + 1][2] == REVISED.bit
    return +table


def joined(left: Counter[Values], right: Counter[Values], how: How) -> Counter[Values]:
    """Return the batch answer."""
    pairs: Counter[Values] = Counter()
    lefts, rights = list(left.elements()), list(right.elements())
    met = {row[0] for row in lefts} & {row[0] for row in rights} - {None}
    for row in lefts:
        if how in ("semi", "anti"):
            pairs[row] += (row[0] in met) is (how == "semi")
        elif row[0] not in met and how in ("left", "outer"):
            pairs[*row, None] += 1
    if how in ("right", "outer"):
        pairs.update((row[0], None, row[1]) for row in rights if row[0] not in met)
    if how not in ("semi", "anti"):
        pairs.update((*a, b[1]) for a in lefts for b in rights if a[0] == b[0] and a[0] in met)
    return +pairs


def until(changes: Sequence[Change], time: int, port: int = 0) -> list[Change]:
    return [row for row in changes if row[0] <= time and row[1] == port]


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer", "semi", "anti"])
@given(draw=chance)
def test_changes_of_a_join_give_its_batch_answer_at_each_time(how: How, draw: Random) -> None:
    changes = changelog(draw, 2)
    made = list(results(table_join(how), changes, 2, draw))
    assert made == list(results(table_join(how), changes, 2, Random(1)))  # noqa: S311
    before: Counter[Values] = Counter()
    for time in sorted({row[0] for row in changes}):
        left, right = (applied(until(changes, time, port)) for port in (0, 1))
        answer = joined(left, right, how)
        assert applied(until(made, time)) == answer, time
        # No row is in between: what goes was in the answer before, what comes is in this one.
        now = [change for change in made if change[0] == time]
        gone = Counter(row for _, _, marks, row in now if marks)
        assert gone <= before, time
        assert Counter(row for _, _, marks, row in now if not marks) <= answer, time
        before = answer


def with_deletions(changes: Sequence[Change], keep: int, *, keyed: bool) -> list[Change]:
    """Return changes with a deletion of each row that goes since its key got none for long.

    Args:
        changes: changes of tables.
        keep: least time that a key stays.
        keyed: whether a key has one row at most, the newest.
    """
    live: list[Change] = []
    made: list[Change] = []
    newest: dict[Any, int] = {}  # time of the newest row of each key, deletions too

    def go(until_ns: int) -> None:
        while live:
            ends = {row[0]: (newest[row[0]] // keep + 2) * keep for _, _, _, row in live}
            if (end := min(ends.values())) > until_ns:
                return
            old = [change for change in live if ends[change[3][0]] == end]
            made.extend((end - 1, port, RETRACTED.bit, row) for _, port, _, row in old)
            live[:] = [change for change in live if ends[change[3][0]] > end]

    for change in changes:
        time, port, marks, row = change
        go(time)
        if keyed:
            known = [other for other in live if other[3][0] == row[0]]
            live[:] = [other for other in live if other[3][0] != row[0]]
        else:
            known = [other for other in live if other[1] == port and other[3] == row]
        if not marks & RETRACTED.bit:
            live.append(change)
        elif not known:
            continue
        elif not keyed:
            live.remove(known[0])
        newest[row[0]] = time
        made.append(change)
    go(changes[-1][0])
    return made


@pytest.mark.parametrize("how", ["inner", "left", "outer", "anti"])
@given(draw=chance)
def test_keys_of_a_join_go_that_no_row_touches(how: How, draw: Random) -> None:
    changes, keep = changelog(draw, 2), draw.choice([1, 2, 5])
    step = replace(table_join(how), keep_ns=keep, on_missing="count")
    made = list(results(step, changes, 2, draw))
    assert made == list(results(step, changes, 2, Random(1)))  # noqa: S311
    whole = with_deletions(changes, keep, keyed=False)
    for time in {row[0] for row in whole}:
        left, right = (applied(until(whole, time, port)) for port in (0, 1))
        assert applied(until(made, time)) == joined(left, right, how), time


@given(draw=chance)
def test_keys_of_a_table_go_that_no_row_touches(draw: Random) -> None:
    changes, keep = changelog(draw, 1, keyed=True), draw.choice([1, 2, 5])
    step = replace(TO_TABLE, keep_ns=keep, on_missing="count")
    made = list(results(step, changes, 1, draw))
    assert made == list(results(step, changes, 1, Random(1)))  # noqa: S311
    whole = with_deletions(changes, keep, keyed=True)
    for time in {row[0] for row in whole}:
        assert applied(until(made, time)) == Counter(newest(until(whole, time)).values()), time


@given(draw=chance)
def test_rows_that_only_come_leave_their_pairs_at_once(draw: Random) -> None:
    changes = [(time, port, 0, row) for time, port, _, row in changelog(draw, 2)]
    step = replace(table_join("inner"), retracts=(False, False))
    made = list(results(step, changes, 2, draw))
    assert made == list(results(step, changes, 2, Random(1)))  # noqa: S311
    expected: list[Values] = []
    there: tuple[list[Values], list[Values]] = ([], [])
    for _, port, _, row in changes:
        there[port].append(row)
        lefts, rights = ([row], there[1]) if port == 0 else (there[0], [row])
        expected += [(*a, b[1]) for a in lefts for b in rights if a[0] == b[0] is not None]
    assert [change[3] for change in made] == expected


def test_a_change_that_comes_late_counts_in_a_join() -> None:
    operator = make_operator(table_join("left"))
    nothing: list[Batch | None] = [None, None]
    left, right = rows_of([(1, 0, 0, (1, "a"))]), rows_of([(2, 1, 0, (1, "b"))])
    operator.work(gate_read([left, right], nothing, 9, 0, 9), 0)
    late = rows_of([(3, 1, OLD, (1, "b")), (3, 1, REVISED.bit, (1, "c"))])
    operator.work(gate_read(nothing, [None, late], 9, 0, 9), 0)
    made = operator.work(gate_read(nothing, nothing, 12, 0, 12), 0)
    assert made.rows is not None
    assert made.rows.event_time_ns.tolist() == [9, 9]
    assert made.rows.columns["w"].tolist() == ["b", "c"]
    assert operator.late_dropped == 0


def newest(changes: Sequence[Change]) -> dict[Any, Values]:
    """Return {key: its newest row}."""
    rows: dict[Any, Values] = {}
    for _, _, marks, row in changes:
        rows.pop(row[0], None)
        if not marks & RETRACTED.bit:
            rows[row[0]] = row
    return rows


@given(draw=chance)
def test_a_table_has_the_newest_row_of_each_key_at_each_time(draw: Random) -> None:
    changes = changelog(draw, 1, keyed=True)
    made = list(results(TO_TABLE, changes, 1, draw))
    assert made == list(results(TO_TABLE, changes, 1, Random(1)))  # noqa: S311
    for time in {row[0] for row in changes}:
        assert applied(until(made, time)) == Counter(newest(until(changes, time)).values()), time


MISSING: dict[str, tuple[Step, int]] = {
    "join": (table_join("inner"), 2),
    "to_table": (TO_TABLE, 1),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_row_that_was_never_there_is_an_error_unless_counted(name: str) -> None:
    step, ports = MISSING[name]
    nowhere: list[Change] = [(1, 0, 0, (1, "a")), (2, 0, RETRACTED.bit, (2, "b"))]
    with pytest.raises(OperatorError, match=r"(?s)'k': 2.*on_missing='count'"):
        list(results(step, nowhere, ports, Random(1)))  # noqa: S311
    counting = make_operator(replace(step, on_missing="count"))  # type: ignore[call-arg]
    nothing: list[Batch | None] = [None] * ports
    sides = [rows_of(nowhere), *nothing[1:]]
    counting.work(gate_read(sides, nothing, 5, 0, 5), 0)
    assert (counting.counts(), counting.rows_held) == ({"missing_rows": 1}, 1)


@pytest.mark.parametrize("name", MISSING)
def test_more_rows_than_may_be_kept_are_an_error(name: str) -> None:
    step, ports = MISSING[name]
    many: list[Change] = [(time, 0, 0, (time, "a")) for time in range(9)]
    with pytest.raises(OperatorError, match="more than most_kept_rows=8"):
        list(results(step, many, ports, Random(1), most_kept_rows=8))  # noqa: S311
    gone = replace(step, keep_ns=2)  # type: ignore[call-arg]
    list(results(gone, many, ports, Random(1), most_kept_rows=4))  # noqa: S311
