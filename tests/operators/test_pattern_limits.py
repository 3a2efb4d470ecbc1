"""What a pattern may keep: no more matches than allowed, no events longer than they are needed."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import READY_ONLY, Batch, GateRead
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence
from slackwater.runtime.patterns.operator import machine as room
from slackwater.runtime.patterns.operator.machine import PatternMachine
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import OpenedWindows, TimeWindows, Within
from tests.support.rows import bound
from tests.support.told import gate_read

ASKED = (
    Asked("a", where=col("is_a")),
    Asked("b", where=bound(~col("is_a"), pa.bool_())),
    Asked(
        "more",
        where=bound(~col("is_a"), pa.bool_()),
        also=bound(col("v") > col("a.v"), pa.int64()),
        refers=frozenset({"a"}),
    ),
)


def machine(*places: Place, most: int = 1000, after: tuple[int, ...] = (), **given: Any) -> Any:
    settings: dict[str, Any] = {
        "selection": "each",
        "consumes": False,
        "scope": Within(span_ns=100),
        **given,
    }
    fields = [("key", pa.int64()), ("events", pa.string())]
    if not isinstance(settings["scope"], Within):
        fields.insert(1, ("window_start", pa.timestamp("ns")))
    step = PatternStep(
        name="found",
        inputs=("rows",),
        schema=pa.schema(fields),
        keys=("key",),
        pattern=Normal(ASKED, (Sequence(places, after),)),
        release=READY_ONLY,
        **settings,
    )
    return PatternMachine(step, most_kept_rows=most)


def read_of(rows: list[tuple[int, int, bool, int]]) -> GateRead:
    """Rows are (time, key, whether it is an a, v)."""
    times = np.array([row[0] for row in rows], dtype=np.int64)
    columns: Any = {
        "key": np.array([row[1] for row in rows], dtype=np.int64),
        "is_a": np.array([row[2] for row in rows], dtype=np.bool_),
        "v": np.array([row[3] for row in rows], dtype=np.int64),
    }
    last = int(times[-1])
    return gate_read(
        [Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns)], [None], last, 0, last
    )


@pytest.mark.parametrize(
    ("places", "given"),
    [
        ((Place((0,)), Place((0,)), Place((0,))), {}),
        ((Place((0,)), Place((0,)), Place((0,))), {"scope": TimeWindows(1000, 1000)}),
        ((Place((0,)), Place((0,)), Place((0,))), {"after": (1,)}),
        ((Place((0,)), Place((0,), most=None)), {}),
    ],
    ids=["within", "window", "no at the end", "repeat"],
)
def test_a_read_that_makes_too_many_matches_is_refused_before_they_are_made(
    places: tuple[Place, ...], given: dict[str, Any]
) -> None:
    """Forty events of one key are 9,880 threes, and 2^39 matches with a repeat."""
    one = machine(*places, **given)
    reads = [read_of([(n, 1, True, 0) for n in range(40)]), read_of([(10_000, 2, True, 0)])]
    with pytest.raises(OperatorError, match="matches that one read makes have more than") as told:
        deque((one.work(each, 0).rows for each in reads), maxlen=0)
    assert "most_kept_rows=1,000 events" in str(told.value)
    assert "selection='first'" in str(told.value)


def test_as_many_matches_as_are_allowed_leave_with_each_read() -> None:
    one = machine(Place((0,)), Place((1,)), most=200)
    for begin in range(0, 10_000, 1000):
        rows = [(begin + n, 1, n < 10, 0) for n in range(20)]
        made = one.work(read_of(rows), 0).rows
        assert made is not None
        assert len(made) == 100


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"scope": Within(events=10_000)},
        {"scope": TimeWindows(10_000, 10_000)},
        {"scope": OpenedWindows(0, span_ns=10_000)},
        {"after": (1,)},
        {"selection": "first", "consumes": True},
    ],
    ids=["within", "by number", "tumbling", "opened", "no at the end", "consumed"],
)
def test_more_open_events_than_may_be_held_end_the_job(given: dict[str, Any]) -> None:
    one = machine(Place((0,)), Place((1,)), most=40, **{"scope": Within(span_ns=10_000), **given})
    for n in range(40):
        one.work(read_of([(n, n % 3, True, 0)]), 0)
    with pytest.raises(OperatorError, match=r"41 rows are held .* most_kept_rows=40: .*within="):
        one.work(read_of([(40, 0, True, 0)]), 0)


@pytest.mark.parametrize("scope", [Within(span_ns=10), TimeWindows(10, 10)])
def test_events_that_are_over_do_not_count_as_held(scope: Any) -> None:
    """Each key comes once: nothing but time tells its matcher that its event is over."""
    one = machine(Place((0,)), Place((1,)), most=40, scope=scope)
    for n in range(500):
        one.work(read_of([(n, n, True, 0)]), 0)


def test_keys_that_come_again_keep_no_events_that_are_over() -> None:
    """Of 50 keys that come every 40 ns, two or three events each are in reach."""
    one = machine(Place((0,)), Place((1,)), most=100_000)
    held = []
    for begin in range(0, 8000, 40):
        one.work(read_of([(begin + key // 2, key, True, 0) for key in range(50)]), 0)
        held.append(one.rows_held)
        logged = sum(len(each.log.numbers) for each in one.matchers.of_key.values())
        assert logged <= 50 * 2 * 4
    assert held[-1] > 50


def test_what_waits_for_the_end_of_a_scope_is_counted() -> None:
    one = machine(Place((0,)), Place((0,)), after=(1,), scope=TimeWindows(100, 100))
    one.work(read_of([(n, n % 3, True, 0) for n in range(9)]), 0)
    assert one.waiting == 3  # a window of each key
    assert "waiting" in one.counts()
    one.work(read_of([(200, 0, True, 0)]), 0)
    assert one.waiting == 0


def test_rows_near_the_most_are_not_looked_through_with_each_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []
    keeps = room.PatternMachine._keep_rows

    def counted(self: PatternMachine, held: list[int]) -> None:
        looks.append(len(self.rows))
        keeps(self, held)

    monkeypatch.setattr(room.PatternMachine, "_keep_rows", counted)
    one = machine(Place((0,)), Place((1,)), most=1000, scope=Within(events=900))
    for n in range(3000):
        one.work(read_of([(n, 1, True, 0)]), 0)
    assert one.rows_held <= 2 * 900
    assert len(looks) < 60


def test_a_predicate_that_is_rarely_true_is_computed_of_many_events_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each b is held against 300 a: in a few computations, and with the same matches."""
    of = Random(3)  # noqa: S311 - a seeded stream
    rows = [(n, 1, True, of.randrange(1000)) for n in range(300)]
    rows += [(300 + n, 1, False, of.randrange(40)) for n in range(50)]
    computed = [0]
    was = room.Conditions.hold

    def counted(self: Any, *given: Any) -> bool:
        computed[0] += 1
        return was(self, *given)

    found = []
    for is_together in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(room.Conditions, "hold", counted)
            if not is_together:
                patch.setattr(room.Conditions, "hold_many", lambda *_: None)
            computed[0] = 0
            given = {"scope": Within(span_ns=999), "selection": "first", "consumes": True}
            one = machine(Place((0,)), Place((2,)), **given)
            made = one.work(read_of(rows), 0).rows
            found.append(None if made is None else made.columns["events"].tolist())
            if is_together:
                assert computed[0] <= 50 * 5
            else:
                assert computed[0] > 50 * 100
    assert found[0] == found[1]
    assert found[0]
