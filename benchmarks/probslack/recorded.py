"""Real streams with two times: buses in no order, phones with a type for each device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.probslack.streams import MS, Stream
from examples.buses_in_time import STALE_S
from examples.real_data import phone_network, warsaw
from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import ByTime, EventDriven

SECOND = 1_000 * MS
DROPPED_NS = 30 * SECOND
"""The buses' feed leaves out fixes that are older."""


@dataclass(frozen=True)
class Recorded:
    """A data set, and how it is asked.

    Attributes:
        streams: {session: its rows}.
        policies: δ -> the policies.
        length_ms: l.
        frequencies_ms: f.
        frequency_ms: f where δ changes.
        tick_ns: the resolution of its clocks.
    """

    streams: Mapping[str, Stream]
    policies: Callable[[float], dict[str, Closing]]
    length_ms: float
    frequencies_ms: tuple[float, ...]
    frequency_ms: float
    tick_ns: int


def buses() -> Recorded:
    """Return the two sessions of `bus-warsaw-2024`.

    All buses are one type, in no order: each bus is in order by itself, but more than a thousand
    of them take turns, and many stop reporting for good. f is as large beside the mean delay of
    5.6 s as the paper's beside its 298 ms.
    """
    return Recorded(
        {path.stem: _fixes(path) for path in sorted(warsaw().glob("*.parquet"))},
        of_buses,
        length_ms=30_000.0,
        frequencies_ms=(4_000.0, 8_000.0, 12_000.0, 16_000.0, 20_000.0),
        frequency_ms=8_000.0,
        tick_ns=SECOND,
    )


def phones() -> Recorded:
    """Return the five sessions of `iot-umts-ooo-2014`: a type for each device, the paper's f."""
    columns = ["session", "device", "detect_time_ms", "server_recv_time_ms"]
    read = pq.read_table(phone_network() / "umts_d1_d5.parquet", columns=columns)
    sessions = pc.unique(read["session"]).to_pylist()
    return Recorded(
        {one: _messages(read.filter(pc.equal(read["session"], one))) for one in sessions},
        of_phones,
        length_ms=10_000.0,
        frequencies_ms=(200.0, 400.0, 600.0, 800.0, 1_000.0),
        frequency_ms=400.0,
        tick_ns=MS,
    )


def of_buses(miss: float) -> dict[str, Closing]:
    """Return the policies for events in no order; event-driven as sure as the feed allows."""
    return {
        "event-driven": EventDriven(DROPPED_NS, tick_ns=SECOND),
        "ignore": ByTime(0, tick_ns=SECOND),
        "mean delay": ByTime(tick_ns=SECOND),
        "30 s": ByTime(DROPPED_NS, tick_ns=SECOND),
        "ProbSlack": ProbSlack(miss, tick_ns=SECOND),
        "extended": ProbSlack(miss, tick_ns=SECOND, sliding=True, scale=None),
    }


def of_phones(miss: float) -> dict[str, Closing]:
    """Return the policies for types that come in order, and the same without types of their own."""
    return {
        "event-driven": EventDriven(),
        "ignore": ByTime(0),
        "mean delay": ByTime(),
        "ProbSlack": ProbSlack(miss),
        "one fit for all": ProbSlack(miss, together=True),
        "no order": ProbSlack(miss, ordered=False),
        "extended": ProbSlack(miss, sliding=True, scale=None),
    }


def _fixes(path: object) -> Stream:
    read = pq.read_table(path, columns=["event_time_s", "recv_time_s"])
    event_time_s, arrival_s = (
        read[name].to_numpy().astype(np.int64) for name in ("event_time_s", "recv_time_s")
    )
    fresh = arrival_s - event_time_s <= STALE_S
    count = int(fresh.sum())
    return Stream(
        np.zeros(count, dtype=np.int64), event_time_s[fresh] * SECOND, arrival_s[fresh] * SECOND
    )


def _messages(rows: pa.Table) -> Stream:
    types = rows["device"].combine_chunks().dictionary_encode().indices.to_numpy()
    event_time_ms, arrival_ms = (
        rows[name].to_numpy().astype(np.int64) for name in ("detect_time_ms", "server_recv_time_ms")
    )
    return Stream(types.astype(np.int64), event_time_ms * MS, arrival_ms * MS)
