"""`slackwater.testing.verify_operator`: ours pass it, and what is wrong it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError, SettingError
from slackwater.testing import verify_operator

MS = 1_000_000


def rows(seed: int, size: int = 150) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": rng.integers(0, 100, size) * MS,
            "key": rng.integers(0, 4, size),
            "line": pa.array([["a", "b", None][n] for n in rng.integers(0, 3, size)]),
            "value": rng.random(size),
        }
    )


class Gaps:
    """For each row how long it has been since the last, and a row when nothing came for 5 ms."""

    def __init__(self) -> None:
        self.last_ns: int | None = None
        self.due_ns: int | None = None

    def on_rows(self, _key: Any, rows: Any) -> list[dict[str, Any]]:
        gap = 0 if self.last_ns is None else rows.event_time_ns - self.last_ns
        self.last_ns = rows.event_time_ns
        self.due_ns = rows.event_time_ns + 5 * MS
        return [{"key": row["key"], "gap": gap} for row in rows]

    def on_time(self, _key: Any, t: int) -> list[dict[str, Any]]:
        return [{"key": -1, "gap": t}]


GAPS = {"key": "int64", "gap": "int64"}
LOW, HIGH = (
    sw.patterns.event("low", where=sw.col("value") < 0.4),
    sw.patterns.event("high", where=sw.col("value") > 0.3),
)
ELSE = sw.patterns.event("else", where=sw.col("key") == 1)
ONE: dict[str, Callable[[sw.Stream], sw.Stream]] = {
    "filter": lambda s: s.filter(sw.col("value") < 0.5),
    "with_columns": lambda s: s.with_columns(twice=sw.col("value") * 2),
    "select": lambda s: s.select("line", v="value"),
    "map_batches": lambda s: s.map_batches(
        lambda columns: {"v": columns["value"] + 1}, {"v": "float64"}
    ),
    "map_rows": lambda s: s.map_rows(
        lambda row: None if row["value"] < 0.5 else {"v": row["value"]}, {"v": "float64"}
    ),
    "flat_map": lambda s: s.flat_map(
        lambda row: [{"v": row["value"]}] * (row["key"] % 3), {"v": "float64"}
    ),
    "top_k": lambda s: s.top_k("value", 2, by="line", window=sw.tumbling("10ms"), rank="place"),
    "newest": lambda s: s.newest("line"),
    "oldest in sliding windows": lambda s: s.oldest("key", window=sw.sliding("20ms", "5ms")),
    "silence": lambda s: s.silence("line", after="8ms"),
    "limit": lambda s: s.limit(9),
    "aggregate": lambda s: s.aggregate(
        by="line", window=sw.sliding("20ms", "5ms"), n=sw.count(), q=sw.quantile("value", 0.5)
    ),
    "aggregate that corrects": lambda s: s.aggregate(
        by=("line", "key"), window=sw.tumbling("10ms"), late="correct", s=sw.sum("value")
    ),
    "aggregate that allows for clocks": lambda s: s.aggregate(
        by="line", window=sw.sliding("20ms", "5ms"), n=sw.count(), m=sw.mean("value"), drift="2ms"
    ),
    "aggregate that allows for clocks and corrects": lambda s: s.aggregate(
        by="line", window=sw.tumbling("10ms"), late="correct", n=sw.min("value"), drift="key"
    ),
    "dedupe": lambda s: s.dedupe("key", within="6ms"),
    "dedupe by two": lambda s: s.dedupe(("key", "line"), within="30ms"),
    "followed by": lambda s: s.followed_by(
        first=sw.col("value") < 0.4, then=sw.col("value") > 0.3, within="8ms", by="line"
    ),
    "followed by, as far as clocks tell": lambda s: s.key_by("key").followed_by(
        first=sw.col("value") < 0.4, then=sw.col("value") > 0.3, within="8ms", drift="2ms"
    ),
    "pattern with a no": lambda s: s.key_by("line").pattern(
        sw.patterns.seq(LOW, sw.patterns.no(ELSE), HIGH), within="8ms"
    ),
    "pattern in windows, in any order": lambda s: s.pattern(
        sw.patterns.seq(LOW, sw.patterns.all_of(HIGH, ELSE)), window=sw.tumbling("12ms")
    ),
    "process": lambda s: s.key_by("key").process(Gaps, GAPS, within="8ms"),
    "process by two": lambda s: s.key_by("key", "line").process(Gaps(), GAPS, within="30ms"),
}
TWO: dict[str, Callable[[sw.Stream, sw.Stream], sw.Stream]] = {
    "merge": lambda a, b: a.merge(b),
    "join": lambda a, b: a.join(b, on="key", within="4ms"),
    "join that allows for clocks": lambda a, b: a.join(b, on="key", within="4ms", drift="1ms"),
    "join by slack": lambda a, b: a.join(b, on="line", within="9ms", keep="slack"),
}


@pytest.mark.parametrize("name", ONE)
def test_an_operator_with_one_input_keeps_what_operators_promise(name: str) -> None:
    verify_operator(ONE[name], rows(0), tries=3)


@pytest.mark.parametrize("name", TWO)
def test_an_operator_with_two_inputs_keeps_what_operators_promise(name: str) -> None:
    verify_operator(TWO[name], rows(0), rows(7), tries=3)


class Shared(Gaps):
    """Counts for all keys in one place, which is none of its own."""

    count: ClassVar[list[int]] = [0]

    def on_rows(self, _key: Any, rows: Any) -> list[dict[str, Any]]:
        self.count[0] += 1
        return [{"key": row["key"], "gap": self.count[0]} for row in rows]


class Secretive(Gaps):
    """Keeps what no snapshot can have."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()


def test_what_depends_on_how_rows_are_cut_is_found() -> None:
    with pytest.raises(AssertionError, match=r"'map-1'.*other rows leave when they come a few at"):
        verify_operator(
            lambda s: s.map_batches(
                lambda columns: {"v": columns["value"].cumsum()}, {"v": "float64"}
            ),
            rows(0),
        )


def test_an_operator_that_shares_state_between_keys_is_found() -> None:
    with pytest.raises(AssertionError, match=r"'process-1'"):
        verify_operator(lambda s: s.key_by("key").process(Shared, GAPS, within="8ms"), rows(0))


def test_state_that_is_not_plain_is_found_and_named() -> None:
    with pytest.raises(OperatorError, match=r"state of key \d.*Secretive\.seen is a set"):
        verify_operator(lambda s: s.key_by("key").process(Secretive, GAPS, within="8ms"), rows(0))


def test_more_than_one_operator_at_a_time_is_refused() -> None:
    with pytest.raises(SettingError, match="fed by filter-1"):
        verify_operator(lambda s: s.filter(sw.col("key") > 0).select("key"), rows(0))
