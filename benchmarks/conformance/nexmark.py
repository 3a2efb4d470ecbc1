"""Nexmark, with the rows and answers of RisingWave's tests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import cached_property
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Answers, Case, Translations, read_rows, results

NEXMARK = Translations()
BID = ("auction", "bidder", "price", "date_time")
TIMES = ("date_time", "expires")
PRICE, ID, CATEGORY = sw.col("price"), sw.col("auction"), sw.col("category")
EUROS = PRICE * 0.908
IS_CHEAP, IS_DEAR = PRICE < 10_000, PRICE >= 1_000_000
RANKS = {"rank1": IS_CHEAP, "rank2": ~IS_CHEAP & ~IS_DEAR, "rank3": IS_DEAR}
IN_SALE = sw.col("date_time") <= sw.col("expires")
HALF_A_MINUTE = "30s"
"""Longer than any auction, and than all rows of these streams."""


class Streams:
    """The three streams of Nexmark, as sources of a flow."""

    def __init__(self, flow: sw.Dataflow, case: Case) -> None:
        self._flow, self._folder = flow, case.folder / "risingwave-nexmark"

    def _stream(self, name: str) -> sw.Stream:
        rows: Any = read_rows(self._folder / f"{name}.json")
        columns = {column: [row[column] for row in rows] for column in rows[0]}
        for column in TIMES:
            if column in columns:
                columns[column] = [dt.datetime.fromisoformat(text) for text in columns[column]]
        return self._flow.source(name, sw.table(columns), event_time="date_time")

    @cached_property
    def bid(self) -> sw.Stream:
        return self._stream("bid")

    @cached_property
    def auction(self) -> sw.Stream:
        return self._stream("auction")

    @cached_property
    def person(self) -> sw.Stream:
        return self._stream("person")


def query(
    *names: str, way: Any = "straight"
) -> Callable[[Callable[[Streams], sw.Stream]], Callable[[Streams], sw.Stream]]:
    """Register a function of the streams as the translation of some cases."""

    def register(make: Callable[[Streams], sw.Stream]) -> Callable[[Streams], sw.Stream]:
        @NEXMARK(*names, way=way)
        def find(case: Case) -> Answers:
            rows = results(lambda flow: make(Streams(flow, case)))
            return (tuple(row.values()) for row in rows)

        return make

    return register


@query("rw-q0")
def q0(s: Streams) -> sw.Stream:
    return s.bid.select(*BID)


@query("rw-q1")
def q1(s: Streams) -> sw.Stream:
    return s.bid.select("auction", "bidder", "date_time", euros=EUROS).select(
        "auction", "bidder", "euros", "date_time"
    )


@query("rw-q2")
def q2(s: Streams) -> sw.Stream:
    wanted = sw.col("auction").is_in([1007, 1020, 2001, 2019, 2087])
    return s.bid.filter(wanted).select("auction", "price")


@query("rw-q5")
def q5(s: Streams) -> sw.Stream:
    counts = s.bid.aggregate(by="auction", window=sw.sliding("10s", "2s"), n=sw.count())
    most = counts.aggregate(window=sw.tumbling("2s"), n=sw.max("n"))
    hot = counts.join(most, on="n", within="1ns")
    return hot.select("auction", "n")


@query("rw-q7")
def q7(s: Streams) -> sw.Stream:
    highest = s.bid.aggregate(window=sw.tumbling("10s"), price=sw.max("price"))
    return s.bid.join(
        highest, on="price", within="10s", where=sw.col("date_time") >= sw.col("window_start")
    ).select("auction", "price", "bidder", "date_time")


@query("rw-q8")
def q8(s: Streams) -> sw.Stream:
    persons = s.person.aggregate(by=["id", "name"], window=sw.tumbling("10s"), n=sw.count())
    sellers = s.auction.aggregate(by="seller", window=sw.tumbling("10s"), n=sw.count())
    new = persons.join(sellers, left_on="id", right_on="seller", within="1ns")
    return new.select("id", "name", "window_start")


@query("rw-q10")
def q10(s: Streams) -> sw.Stream:
    at = sw.col("date_time").dt
    return s.bid.select(*BID, day=at.format("%Y-%m-%d"), hour=at.format("%I:%M"))


@query("rw-q14")
def q14(s: Streams) -> sw.Stream:
    hour = sw.col("date_time").dt.hour()
    is_day = (hour >= 8) & (hour <= 18)
    part = sw.when(is_day).then("dayTime").when((hour <= 6) | (hour >= 20)).then("nightTime")
    bids = s.bid.with_columns(
        euros=EUROS,
        part=part.otherwise("otherTime"),
        c=sw.col("extra").str.length() - sw.col("extra").str.replace("c", "").str.length(),
    )
    some = bids.filter((sw.col("euros") > 1_000_000) & (sw.col("euros") < 50_000_000))
    return some.select("auction", "bidder", "euros", "part", "date_time", "c")


@query("rw-q15")
def q15(s: Streams) -> sw.Stream:
    return _ranked(s.bid, by="day")


@query("rw-q16")
def q16(s: Streams) -> sw.Stream:
    return _ranked(s.bid, by=["channel", "day"], minute=sw.max("minute"))


def _ranked(bids: sw.Stream, by: Any, **more: Any) -> sw.Stream:
    at = sw.col("date_time").dt
    every: dict[str, Any] = {"": None, **RANKS}
    days = bids.with_columns(day=at.format("%Y-%m-%d"), minute=at.format("%I:%m"))
    found = days.aggregate(
        by=by,
        window=sw.everything(),
        **more,
        **{f"bids{n}": sw.count(where=rank) for n, rank in every.items()},
        **{f"bidders{n}": sw.count_distinct("bidder", where=rank) for n, rank in every.items()},
        **{f"auctions{n}": sw.count_distinct("auction", where=rank) for n, rank in every.items()},
    )
    return found.drop("window_start", "window_end")


@query("rw-q17")
def q17(s: Streams) -> sw.Stream:
    days = s.bid.with_columns(day=sw.col("date_time").dt.format("%Y-%m-%d"))
    found = days.aggregate(
        by=["auction", "day"],
        window=sw.tumbling("1d"),
        bids=sw.count(),
        **{name: sw.count(where=rank) for name, rank in RANKS.items()},
        least=sw.min("price"),
        most=sw.max("price"),
        mean=sw.mean("price"),
        total=sw.sum("price"),
    )
    return found.drop("window_start", "window_end")


@query("rw-q21")
def q21(s: Streams) -> sw.Stream:
    known = ["apple", "google", "facebook", "baidu"]
    channel = sw.col("channel").str.lower()
    number = sw.col("url").str.extract("channel_id=([^&]*)")
    for n, name in enumerate(known):
        number = sw.where(channel == name, str(n), number)
    bids = s.bid.with_columns(number=number)
    has = channel.is_in(known) | ~sw.col("number").is_null()
    return bids.filter(has).select("auction", "bidder", "price", "channel", "number")


@query("rw-q22")
def q22(s: Streams) -> sw.Stream:
    parts = sw.col("url").str.split("/").list
    folders = {f"dir{n}": parts.get(n + 2) for n in (1, 2, 3)}
    return s.bid.select("auction", "bidder", "price", "channel", **folders)
