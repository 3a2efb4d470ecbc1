"""Q1 to Q4 of [espice] as a user writes them, on real data: see docs/benchmarks/espice.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.espice.options import Quotes, quotes, steps_3, steps_4
from benchmarks.espice.soccer import BREAK_US, SPRINT_MPS, STRIKERS, positions
from benchmarks.patterns.plain import Plain
from slackwater.runtime.patterns.language import Seq
from slackwater.runtime.patterns.operator.step import PatternStep

STRIKER = 10
NEAR_M = 15.0
WITHIN_S = 15
EVERY = 100


@dataclass(frozen=True)
class Asked:
    """A query over some rows.

    Attributes:
        name: what it is called.
        rows: in order; `time` in nanoseconds.
        build: adds the pattern to a stream of them, which sheds or not.
        plain: the same for an engine that does not have our language, if it is asked.
    """

    name: str
    rows: pa.Table
    build: Callable[[sw.Stream, sw.shedding.EventShedding | None], sw.Stream]
    plain: Plain | None = None

    def step(self, shed: sw.shedding.EventShedding | None = None) -> PatternStep:
        """Return the step of the pattern."""
        flow = sw.Dataflow("speed")
        rows = flow.source("rows", sw.table(self.rows), event_time="time", time_unit="ns")
        built = self.build(rows, shed)
        made = flow.steps[built.name]
        assert isinstance(made, PatternStep)
        return made


def query_1(count: int = 4, *, rate_hz: int = 20) -> Asked:
    """N others near the striker, in 15 s behind a sprint of his."""
    of = positions(rate_hz)
    is_striker = of.tags[of.player] == STRIKER
    last = np.maximum.accumulate(np.where(is_striker, np.arange(len(is_striker)), -1))
    away_m = np.hypot(of.x_m - of.x_m[last], of.y_m - of.y_m[last])
    rows = pa.table(
        {
            "time": of.time_us * 1_000,
            "player": of.tags[of.player],
            "sprints": is_striker & (of.speed_mps >= 5),
            "is_near": (last >= 0) & ~is_striker & (away_m <= NEAR_M),
        }
    )

    def build(stream: sw.Stream, shed: sw.shedding.EventShedding | None) -> sw.Stream:
        sprint = sw.patterns.event("sprint", where=sw.col("sprints"))
        near = sw.patterns.event("near", where=sw.col("is_near"))
        return stream.pattern(
            sw.patterns.seq(sprint, sw.patterns.any_of(count, near, distinct="player")),
            window=sw.patterns.opened_by(sprint, within=f"{WITHIN_S}s"),
            matches=1,
            shed=shed,
        )

    plain = pa.table(
        {
            "time": of.time_us,
            "kind": rows["player"],
            "sign": rows["is_near"].cast(pa.int8()),
            "opens": rows["sprints"],
        }
    )
    return Asked("Q1", rows, build, Plain(plain, WITHIN_S * 1_000_000, count))


def query_1_of_all(count: int = 4, *, rate_hz: int = 4, events: int | None = None) -> Asked:
    """Q1 with ten players, each in turn the striker, side by side: every event is there for each.

    As `espice-q1` pools them. The recording pauses for six minutes: what is left of a pause is as
    long as a window.

    Args:
        count: n, so many others.
        rate_hz: events a second of each player.
        events: of a window, where it goes by their number; None: it goes by 15 s.
    """
    of = positions(rate_hz)
    gaps_us = np.diff(of.time_us, prepend=of.time_us[0])
    time_us = np.cumsum(np.where(gaps_us > BREAK_US, WITHIN_S * 1_000_000, gaps_us))
    each = []
    for striker in STRIKERS:
        is_striker = of.tags[of.player] == striker
        last = np.maximum.accumulate(np.where(is_striker, np.arange(len(is_striker)), -1))
        away_m = np.hypot(of.x_m - of.x_m[last], of.y_m - of.y_m[last])
        columns = {
            "time": time_us * 1_000,
            "striker": np.full(len(last), striker),
            "player": of.tags[of.player],
            "sprints": is_striker & (of.speed_mps >= SPRINT_MPS),
            "is_near": (last >= 0) & ~is_striker & (away_m <= NEAR_M),
        }
        each.append(pa.table(columns))
    rows = pa.concat_tables(each).combine_chunks()
    rows = rows.take(np.argsort(rows["time"].to_numpy(), kind="stable"))

    def build(stream: sw.Stream, shed: sw.shedding.EventShedding | None) -> sw.Stream:
        sprint = sw.patterns.event("sprint", where=sw.col("sprints"))
        near = [
            sw.patterns.event(f"near{tag}", of_type=tag, where=sw.col("is_near"))
            for tag in of.tags.tolist()
        ]
        return stream.pattern(
            sw.patterns.seq(sprint, sw.patterns.any_of(count, *near)),
            by="striker",
            type="player",
            window=sw.patterns.opened_by(
                sprint, within=None if events else f"{WITHIN_S}s", events=events
            ),
            matches=1,
            shed=shed,
        )

    return Asked("Q1", rows, build)


def query_2(seed: int, count: int = 20, size: int = 2_000) -> Asked:
    """N contracts that rise, or n that fall, behind a leading one."""
    of = quotes(500, order="a minute", seed=seed)

    def build(stream: sw.Stream, shed: sw.shedding.EventShedding | None) -> sw.Stream:
        lead = sw.patterns.event("lead", where=sw.col("is_leading"))
        rise = sw.patterns.event("rise", where=sw.col("change") > 0)
        fall = sw.patterns.event("fall", where=sw.col("change") < 0)
        either = sw.patterns.either(
            *(
                sw.patterns.seq(lead, sw.patterns.any_of(count, one, distinct="contract"))
                for one in (rise, fall)
            )
        )
        window = sw.patterns.opened_by(lead, events=size)
        return stream.pattern(either, window=window, matches=1, shed=shed)

    return Asked("Q2", _rows(of), build, Plain(_plain(of), size, count, signs=(1, -1)))


def query_3(seed: int, size: int = 2_000) -> Asked:
    """Twenty contracts in sequence, all rising or all falling."""
    of = quotes(200, order="a run", seed=seed)
    steps = steps_3(of).tolist()

    def build(stream: sw.Stream, shed: sw.shedding.EventShedding | None) -> sw.Stream:
        lead = sw.patterns.event("lead", where=sw.col("is_leading"))
        both = sw.patterns.either(*_both(steps))
        window = sw.patterns.opened_by(lead, events=size)
        return stream.pattern(both, type="contract", window=window, matches=1, shed=shed)

    plain = Plain(_plain(of), size, steps=tuple(steps), signs=(1, -1))
    return Asked("Q3", _rows(of), build, plain)


def query_4(seed: int, size: int = 2_000) -> Asked:
    """Fourteen steps of ten contracts, one of them four times."""
    of = quotes(60, order="a run", seed=seed)
    steps = steps_4(of).tolist()

    def build(stream: sw.Stream, shed: sw.shedding.EventShedding | None) -> sw.Stream:
        both = sw.patterns.either(*_both(steps))
        window = sw.patterns.count_window(size, every=EVERY)
        return stream.pattern(both, type="contract", window=window, matches=1, shed=shed)

    rows = _plain(of)
    opens = pa.array(np.arange(rows.num_rows) % EVERY == 0)
    rows = rows.set_column(rows.column_names.index("opens"), "opens", opens)
    return Asked("Q4", _rows(of), build, Plain(rows, size, steps=tuple(steps), signs=(1, -1)))


def _both(steps: list[int]) -> list[Seq]:
    """Return the sequence of rising quotes, and that of falling ones."""
    found = []
    for word, where in (("rise", sw.col("change") > 0), ("fall", sw.col("change") < 0)):
        events = {
            one: sw.patterns.event(f"{word}{one}", of_type=one, where=where) for one in set(steps)
        }
        found.append(sw.patterns.seq(*(events[one] for one in steps)))
    return found


def _rows(of: Quotes) -> pa.Table:
    return pa.table(
        {
            "time": np.arange(len(of.contract)) * 1_000_000,
            "contract": of.contract,
            "change": of.change,
            "is_leading": of.is_leading,
        }
    )


def _plain(of: Quotes) -> pa.Table:
    """Return them by number: a window of so many events is one of so long a time then."""
    return pa.table(
        {
            "time": np.arange(len(of.contract)),
            "kind": of.contract,
            "sign": of.change,
            "opens": of.is_leading,
        }
    )
