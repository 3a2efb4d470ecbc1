"""Nexmark, with the rows and answers of RisingWave's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import (
    Case,
    Rows,
    Suite,
    Way,
    as_time,
    read_rows,
    results,
)

NEXMARK = Suite("RisingWave Nexmark")
BID = ("auction", "bidder", "price", "date_time")
TIMES = ("date_time", "expires")
PRICE = sw.col("price")
EUROS = PRICE * 0.908
RANKS = {
    "rank1": PRICE < 10_000,
    "rank2": (PRICE >= 10_000) & (PRICE < 1_000_000),
    "rank3": PRICE >= 1_000_000,
}
DAY = sw.col("date_time").dt.format("%Y-%m-%d")
LONGER = "1m"
"""Longer than any auction, and than all rows of these streams."""


class Streams:
    """The three streams of Nexmark, as sources of a flow.

    Args:
        flow: flow of the query, to be built.
        case: a case that names the folder of the rows.
        replicas: replicas of the steps with keys.
        speeds: {stream: its speed}, of those that are paced.
    """

    def __init__(
        self,
        flow: sw.Dataflow,
        case: Case,
        replicas: int = 1,
        speeds: Mapping[str, float] | None = None,
    ) -> None:
        self._speeds = speeds or {}
        self._flow, self._folder = flow, case.folder / "risingwave-nexmark"
        self.keyed: Mapping[str, Any] = {"replicas": replicas} if replicas > 1 else {}

    def _stream(self, name: str) -> sw.Stream:
        rows = read_rows(self._folder / f"{name}.json")
        columns = {column: [row[column] for row in rows] for column in rows[0]}
        for column in TIMES:
            if column in columns:
                columns[column] = [as_time(text) for text in columns[column]]
        return self._flow.source(
            name, sw.table(columns), event_time="date_time", speed=self._speeds.get(name)
        )

    @cached_property
    def bid(self) -> sw.Stream:
        """Bids."""
        return self._stream("bid")

    @cached_property
    def auction(self) -> sw.Stream:
        """Auctions."""
        return self._stream("auction")

    @cached_property
    def person(self) -> sw.Stream:
        """Persons."""
        return self._stream("person")

    @cached_property
    def sold(self) -> sw.Stream:
        """Bids with their auctions, made while these were open; times are `begin`, `expires`."""
        auctions = self.auction.rename({"date_time": "begin", "extra": "auction_extra"})
        at = sw.col("date_time")
        return self.bid.join(
            auctions,
            left_on="auction",
            right_on="id",
            within=LONGER,
            where=(at >= sw.col("begin")) & (at <= sw.col("expires")),
            **self.keyed,
        )


Query = Callable[[Streams], sw.Stream]
QUERIES: dict[str, Query] = {}


def query(*names: str, way: Way = "straight", note: str = "") -> Callable[[Query], Query]:
    """Register a function of the streams as the translation of some cases."""

    def register(make: Query) -> Query:
        @NEXMARK.translation(*names, way=way, note=note)
        def run(case: Case) -> Rows:
            return results(lambda flow: make(Streams(flow, case)))

        QUERIES.update(dict.fromkeys(names, make))
        return make

    return register


@query("rw-q0")
def q0(s: Streams) -> sw.Stream:
    return s.bid.select(*BID)


@query("rw-q1")
def q1(s: Streams) -> sw.Stream:
    return s.bid.select("auction", "bidder", {"euros": EUROS}, "date_time")


@query("rw-q2")
def q2(s: Streams) -> sw.Stream:
    wanted = sw.col("auction").is_in([1007, 1020, 2001, 2019, 2087])
    return s.bid.filter(wanted).select("auction", "price")


@query("rw-q3")
def q3(s: Streams) -> sw.Stream:
    sales = s.auction.filter(sw.col("category") == 10)
    sellers = s.person.filter(sw.col("state").is_in(["or", "id", "ca"]))
    sales = sales.select("id", "seller", "date_time")
    pairs = sales.join(
        sellers.rename({"id": "person"}),
        left_on="seller",
        right_on="person",
        within=None,
        **s.keyed,
    )
    return pairs.select("name", "city", "state", "id")


@query("rw-q4")
def q4(s: Streams) -> sw.Stream:
    final = s.sold.aggregate(by=["auction", "category"], final=sw.max("price"), **s.keyed)
    return final.aggregate(by="category", mean=sw.mean("final"), **s.keyed)


@query("rw-q5")
def q5(s: Streams) -> sw.Stream:
    counts = s.bid.aggregate(by="auction", window=sw.sliding("10s", "2s"), n=sw.count(), **s.keyed)
    most = counts.aggregate(window=sw.tumbling("2s"), n=sw.max("n"))
    return counts.join(most, on="n", within="1ns", **s.keyed).select("auction", "n")


@query("rw-q7")
def q7(s: Streams) -> sw.Stream:
    highest = s.bid.aggregate(window=sw.tumbling("10s"), price=sw.max("price"))
    is_since = sw.col("date_time") >= sw.col("window_start")
    pairs = s.bid.join(highest, on="price", within="10s", where=is_since, **s.keyed)
    return pairs.select("auction", "price", "bidder", "date_time")


@query("rw-q8")
def q8(s: Streams) -> sw.Stream:
    window = sw.tumbling("10s")
    persons = s.person.aggregate(by=["id", "name"], window=window, n=sw.count(), **s.keyed)
    sellers = s.auction.aggregate(by="seller", window=window, n=sw.count(), **s.keyed)
    new = persons.join(sellers, left_on="id", right_on="seller", within="1ns", **s.keyed)
    return new.select("id", "name", "window_start")


@query("rw-q10")
def q10(s: Streams) -> sw.Stream:
    at = sw.col("date_time").dt
    return s.bid.select(*BID, day=DAY, hour=at.format("%I:%M"))


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


@query("rw-q20")
def q20(s: Streams) -> sw.Stream:
    bids = s.bid.rename({"date_time": "bid_time", "extra": "bid_extra"})
    sales = s.auction.filter(sw.col("category") == 10)
    return bids.join(sales, left_on="auction", right_on="id", within=None, **s.keyed)


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
    return s.bid.select("auction", "bidder", "price", "channel", folders)


def _bidden(s: Streams) -> sw.Stream:
    """Return auctions with the number of their bids, which changes, if they have some."""
    bids = s.bid.aggregate(by="auction", bids=sw.count(), **s.keyed)
    sales = s.auction.select("id", "item_name")
    return sales.join(bids, left_on="id", right_on="auction", within=None, **s.keyed)


@query("rw-q102")
def q102(s: Streams) -> sw.Stream:
    each = s.bid.aggregate(by="auction", n=sw.count(), **s.keyed)
    mean = each.aggregate(mean=sw.mean("n"))
    mean = mean.select(mean=sw.col("mean").floor(), every=sw.lit(1))
    pairs = _bidden(s).with_columns(every=sw.lit(1)).join(mean, on="every")
    return pairs.filter(sw.col("bids") >= sw.col("mean")).select("id", "item_name", "bids")


@query("rw-q103")
def q103(s: Streams) -> sw.Stream:
    return _bidden(s).filter(sw.col("bids") >= 20).select("id", "item_name")


@query("rw-q105")
def q105(s: Streams) -> sw.Stream:
    return _bidden(s).select("id", "item_name", "bids")


@query("rw-q106")
def q106(s: Streams) -> sw.Stream:
    final = s.sold.aggregate(by="auction", final=sw.max("price"), **s.keyed)
    return final.aggregate(least=sw.min("final"))


@query("rw-q15")
def q15(s: Streams) -> sw.Stream:
    return _ranked(s, by=()).drop("minute")


@query("rw-q16")
def q16(s: Streams) -> sw.Stream:
    return _ranked(s, by="channel")


def _ranked(s: Streams, by: Any) -> sw.Stream:
    ranks: dict[str, Any] = {"total": None, **RANKS}
    counts: dict[str, Any] = {f"{name}_bids": sw.count(where=rank) for name, rank in ranks.items()}
    for what in ("bidder", "auction"):
        for name, rank in ranks.items():
            counts[f"{name}_{what}s"] = sw.count_distinct(what, where=rank)
    keyed = s.keyed if by else {}
    days = s.bid.aggregate(
        {**counts, "last": sw.max("date_time")}, by=by, window=sw.tumbling("1d"), **keyed
    )
    # Their minute is the month: "mm" is that of a date.
    times = {
        "day": sw.col("window_start").dt.format("%Y-%m-%d"),
        "minute": sw.col("last").dt.format("%I:%m"),
    }
    return days.select(*([by] if by else []), times, *counts)


@query("rw-q17")
def q17(s: Streams) -> sw.Stream:
    aggregates: dict[str, Any] = {
        "bids": sw.count(),
        **{name: sw.count(where=rank) for name, rank in RANKS.items()},
        "least": sw.min("price"),
        "most": sw.max("price"),
        "mean": sw.mean("price"),
        "total": sw.sum("price"),
    }
    days = s.bid.aggregate(aggregates, by="auction", window=sw.tumbling("1d"), **s.keyed)
    day = sw.col("window_start").dt.format("%Y-%m-%d")
    return days.select("auction", {"day": day}, *aggregates)


@query("rw-q9")
def q9(s: Streams) -> sw.Stream:
    best = s.sold.top_k(["price", "date_time"], 1, by="auction", ascending=[False, True], **s.keyed)
    return best.select(
        {"id": "auction"},
        *("item_name", "description", "initial_bid", "reserve", "begin", "expires", "seller"),
        *("category", "auction", "bidder", "price", "date_time"),
    )


@query("rw-q18")
def q18(s: Streams) -> sw.Stream:
    newest = s.bid.top_k(
        ["date_time", "extra"], 1, by=["bidder", "auction"], ascending=[False, True], **s.keyed
    )
    return newest.select("auction", "bidder", "price", "channel", "url", "date_time", "extra")


@query("rw-q19")
def q19(s: Streams) -> sw.Stream:
    return s.bid.top_k("price", 10, by="auction", rank="rank_number", **s.keyed)


@query("rw-q101")
def q101(s: Streams) -> sw.Stream:
    highest = s.bid.aggregate(by="auction", highest=sw.max("price"), **s.keyed)
    sales = s.auction.select("id", "item_name")
    both = sales.join(highest, left_on="id", right_on="auction", how="left", **s.keyed)
    return both.select("id", "item_name", "highest")


@query("rw-q104")
def q104(s: Streams) -> sw.Stream:
    few = s.bid.aggregate(by="auction", n=sw.count(), **s.keyed).filter(sw.col("n") < 20)
    sales = s.auction.select("id", "item_name")
    others = sales.join(few, left_on="id", right_on="auction", how="anti", **s.keyed)
    return others.select("id", "item_name")


@query("rw-q6_group_top1")
def q6(s: Streams) -> sw.Stream:
    least = s.sold.top_k("price", 1, by=["auction", "seller"], ascending=True, **s.keyed)
    means = least.over(by="seller", rows=11, mean=sw.mean("price"), **s.keyed)
    return means.select("seller", "mean")
