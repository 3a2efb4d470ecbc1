"""Flink's TestPrograms: windows, joins by time, ranks in windows, patterns."""

from __future__ import annotations

from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, as_time, heard, results, rows_of

FLINK = Suite("Flink", is_pattern=lambda name: name.startswith("flink-match-"))
DAY = "2020-10-10"
TIME = "timestamp[us]"
EVENTS = {"t": TIME, "n": "int64", "text": "string", "name": "string"}


def at(rows: list[list[Any]], place: int) -> list[list[Any]]:
    """Return rows with the time of a day at a place as a time."""
    return [[*row[:place], as_time(row[place], day=DAY), *row[place + 1 :]] for row in rows]


def events(flow: sw.Dataflow, case: Case, **options: Any) -> sw.Stream:
    """Return the events of the windows' cases, which come in this order."""
    return heard(flow, at(case.input, 0), EVENTS, **options)


@FLINK.translation("flink-interval-join")
def interval_join(case: Case) -> Rows:
    def pairs(flow: sw.Dataflow) -> sw.Stream:
        orders = rows_of(flow, at(case.input[0], 1), {"id": "int64", "t": TIME})
        columns = {"shipment": "int64", "order": "int64", "t": TIME}
        shipments = rows_of(flow, at(case.input[1], 2), columns)
        both = orders.join(shipments, left_on="id", right_on="order", within="5s")
        return both.select("id", "t", "t_right")

    return results(pairs)


@FLINK.translation("flink-group-hop")
def group_hop(case: Case) -> Rows:
    def counts(flow: sw.Dataflow) -> sw.Stream:
        window = sw.sliding("10s", "5s")
        rows = events(flow, case).aggregate(by="name", window=window, slack="1s", n=sw.count())
        return rows.select("name", "n")

    return results(counts)


FLINK.lacks(
    "greedy runs of neighbours, `PREV`, measures of a match",
    *(f"flink-match-{name}" for name in ("complex", "event-time")),
    "flink-match-skip-to-next-row",
)
FLINK.lacks(
    "greedy runs, `PREV`, measures, and a second column that orders rows of one time",
    "flink-match-order-int",
)
FLINK.lacks(
    "greedy runs, `PREV`, measures, and `AFTER MATCH SKIP TO` a variable",
    "flink-match-skip-to-first",
    "flink-match-skip-to-last",
)


BID = {"t": TIME, "price": "float64", "item": "string", "supplier": "string"}


def bids(flow: sw.Dataflow, case: Case) -> sw.Stream:
    rows = [[as_time(t, day=DAY), float(price), *rest] for t, price, *rest in case.input]
    return rows_of(flow, rows, BID)


@FLINK.translation("flink-group-tumble")
def group_tumble(case: Case) -> Rows:
    def sums(flow: sw.Dataflow) -> sw.Stream:
        return _summed(flow, case, sw.tumbling("5s")).select(
            "name", "window_start", "window_end", "rows", "total", "texts"
        )

    return results(sums)


def _summed(flow: sw.Dataflow, case: Case, window: Any) -> sw.Stream:
    return _sums(events(flow, case), window)


def _sums(rows: sw.Stream, window: Any) -> sw.Stream:
    return rows.aggregate(
        by="name",
        window=window,
        slack="1s",
        rows=sw.count(),
        total=sw.sum("n"),
        texts=sw.count_distinct("text"),
    )


def _hops(case: Case, window: Any) -> Rows:
    return results(
        lambda flow: _summed(flow, case, window).select(
            "name", "window_start", "rows", "total", "texts"
        )
    )


@FLINK.translation("flink-window-agg-hop")
def hops(case: Case) -> Rows:
    return _hops(case, sw.sliding("10s", "5s"))


@FLINK.translation("flink-window-agg-hop-offset")
def hops_with_offset(case: Case) -> Rows:
    return _hops(case, sw.sliding("10s", "5s", offset="1s"))


@FLINK.translation("flink-group-session")
def group_session(case: Case) -> Rows:
    def counts(flow: sw.Dataflow) -> sw.Stream:
        window = sw.session("3s")
        rows = events(flow, case, disorder="1s").aggregate(by="name", window=window, n=sw.count())
        return rows.select("name", "n")

    return results(counts)


def _window_join(case: Case, how: Any) -> Rows:
    def both(flow: sw.Dataflow) -> sw.Stream:
        # Their watermark is 1 s old: a row that is older is late.
        left, right = (
            heard(
                flow,
                at(rows, 0),
                {"t": TIME, "id": "string", "n": "int64", "name": "string"},
                disorder="1s",
            )
            for rows in case.input
        )
        window = sw.col("t").dt.truncate("5s")
        left = left.select("t", "id", "n", "name", window=window, who="name")
        right = right.select("t", "id", "n", "name", window=window)
        pairs = left.join(right, on=["name", "window"], within="5s", how=how)
        # The answer has name and window of the left side alone.
        is_left = ~sw.col("id").is_null()
        pairs = pairs.with_columns(window=sw.where(is_left, sw.col("window"), None))
        return pairs.select("window", "who", "id", "n", "id_right", "n_right")

    return results(both)


@FLINK.translation("flink-window-join-right")
def window_join_right(case: Case) -> Rows:
    return _window_join(case, "right")


@FLINK.translation("flink-window-join-full-outer")
def window_join_outer(case: Case) -> Rows:
    return _window_join(case, "outer")


def _ranked(case: Case, window: Any, *, least: bool) -> Rows:
    def best(flow: sw.Dataflow) -> sw.Stream:
        rows = bids(flow, case).top_k("price", 3, window=window, ascending=least, rank="rank")
        return rows.select("window_start", "t", "supplier", "price", "item", "rank")

    return results(best)


@FLINK.translation("flink-rank-tumble-min")
def rank_least(case: Case) -> Rows:
    return _ranked(case, sw.tumbling("10s"), least=True)


@FLINK.translation("flink-rank-tumble-max")
def rank_most(case: Case) -> Rows:
    return _ranked(case, sw.tumbling("10s"), least=False)


@FLINK.translation("flink-rank-hop-min")
def rank_hops(case: Case) -> Rows:
    return _ranked(case, sw.sliding("10s", "5s"), least=True)


def _ranked_sums(case: Case, *, least: bool) -> Rows:
    def best(flow: sw.Dataflow) -> sw.Stream:
        window = sw.tumbling("10s")
        sums = bids(flow, case).aggregate(
            by="supplier", window=window, total=sw.sum("price"), n=sw.count()
        )
        top = sums.top_k("total", 3, window=window, ascending=least, rank="rank")
        return top.select("window_start", "supplier", "total", "n", "rank")

    return results(best)


@FLINK.translation("flink-rank-agg-min")
def rank_least_sums(case: Case) -> Rows:
    return _ranked_sums(case, least=True)


@FLINK.translation("flink-rank-agg-max")
def rank_most_sums(case: Case) -> Rows:
    return _ranked_sums(case, least=False)


def _single(case: Case, *, oldest: bool) -> Rows:
    def rows(flow: sw.Dataflow) -> sw.Stream:
        best = bids(flow, case).top_k("t", 1, window=sw.tumbling("10s"), ascending=oldest)
        return best.select("t", "price", "item", "supplier", "window_start")

    return results(rows)


@FLINK.translation("flink-window-dedup-asc")
def oldest(case: Case) -> Rows:
    return _single(case, oldest=True)


@FLINK.translation("flink-window-dedup-desc")
def newest(case: Case) -> Rows:
    return _single(case, oldest=False)


@FLINK.translation("flink-temporal-nested", "flink-temporal-map")
def converted(case: Case) -> Rows:
    def amounts(flow: sw.Dataflow) -> sw.Stream:
        columns = {"amount": "int64", "currency": "string", "t": TIME}
        orders = rows_of(flow, at(case.input[0], 2), columns)
        columns = {"currency": "string", "rate": "int64", "t": TIME}
        rates = rows_of(flow, at(case.input[1], 2), columns)
        newest = orders.asof(rates, on="currency", how="inner")
        return newest.select(amount=sw.col("amount") * sw.col("rate"))

    return results(amounts)


def as_read(
    flow: sw.Dataflow, rows: list[list[Any]], columns: dict[str, str], *, before: int
) -> sw.Stream:
    """Return rows whose event time is their arrival: processing time.

    Args:
        flow: flow that gets the source.
        rows: rows, a list of values each.
        columns: {column: alias of an Arrow type} in the order of the values.
        before: number of rows that their test reads at once, before it starts the job again. The
            others come an hour later.
    """
    read = [[*row, 0 if n < before else 3_600] for n, row in enumerate(rows)]
    columns = {**columns, "read_at": "timestamp[s]"}
    return rows_of(flow, read, columns, event_time="read_at", arrival="read_at", speed=1.0)


@FLINK.translation("flink-interval-join-proc")
def interval_join_as_read(case: Case) -> Rows:
    def pairs(flow: sw.Dataflow) -> sw.Stream:
        of_orders = {"id": "int64", "t": "string"}
        of_shipments = {"shipment": "int64", "order": "int64", "t": "string"}
        orders = as_read(flow, case.input[0], of_orders, before=5)
        shipments = as_read(flow, case.input[1], of_shipments, before=4)
        both = orders.join(shipments, left_on="id", right_on="order", within="5s")
        return both.select("id", order="id")

    return results(pairs)


def _counted_as_read(case: Case, window: Any, *columns: str) -> Rows:
    def counts(flow: sw.Dataflow) -> sw.Stream:
        rows = as_read(flow, case.input, {**EVENTS, "t": "string"}, before=11)
        return _sums(rows, window).select("name", "rows", *columns)

    return results(counts)


@FLINK.translation("flink-group-tumble-proc")
def group_tumble_as_read(case: Case) -> Rows:
    return _counted_as_read(case, sw.tumbling("5s"), "total", "texts")


@FLINK.translation("flink-group-hop-proc")
def group_hop_as_read(case: Case) -> Rows:
    return _counted_as_read(case, sw.sliding("10s", "5s"))


@FLINK.translation("flink-group-session-proc")
def group_session_as_read(case: Case) -> Rows:
    return _counted_as_read(case, sw.session("3s"))
