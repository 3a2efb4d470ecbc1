"""Where do buses crawl? Real fixes of Warsaw's buses, as late and disordered as they came.

Two buses of different lines, both under 8 km/h, in one cell of about 500 m, within 60 s.

    make demo DATA=<folder with the Warsaw parquet files>
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import slackwater as sw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CRAWL_KMH = 8.0
STALE_S = 60
TRIP_GAP_S = 120
FEED_PROMISE = "30s"
"""The feed drops fixes that are older than 30 s, so each poll promises nothing older than that."""
CELL_LAT_DEG, CELL_LON_DEG = 0.0045, 0.00735  # 500 m at 52.2° north
EARTH_KM = 6_371.0


def build(
    fixes: sw.connectors.Input,
    *,
    speed: float | None = None,
    slack: str | None = None,
    out: sw.connectors.Output | None = None,
) -> sw.Dataflow:
    """Return the flow over prepared fixes (see `prepare`)."""
    flow = sw.Dataflow("warsaw-crawl", slack=slack)
    seen = flow.source(
        "fixes",
        fixes,
        event_time="event_time",
        arrival="recv_time",
        speed=speed,
        writer="vehicle",
        promise=sw.col("recv_time") - sw.duration(FEED_PROMISE),
    )
    crawling = seen.filter(sw.col("kmh") < CRAWL_KMH)
    pairs = crawling.join(
        crawling,
        on="cell",
        within="60s",
        # Each pair once: of the two orders in which a pair meets itself, keep one.
        where=(sw.col("vehicle") < sw.col("vehicle_right"))
        & (sw.col("line") != sw.col("line_right")),
        name="meet",
    )
    pairs.select("cell", "vehicle", "line", "kmh", "vehicle_right", "line_right", "kmh_right").sink(
        "crawls", out or sw.collect_sink()
    )
    return flow


def prepare(spark: SparkSession, path: Path) -> DataFrame:
    """Let Spark read fixes, drop stale ones, derive speed and cell, and order by arrival.

    `path` is a file, or a folder of which the parquet files are read.
    """
    from pyspark.sql import Window  # noqa: PLC0415 (Spark is there only when it runs)
    from pyspark.sql import functions as f  # noqa: PLC0415

    files = spark.read.option("pathGlobFilter", "*.parquet").parquet(str(path))
    fixes = files.filter(f.col("recv_time_s") - f.col("event_time_s") <= STALE_S)
    trip = Window.partitionBy("vehicle").orderBy("event_time_s")
    before = {name: f.lag(name).over(trip) for name in ("lat", "lon", "event_time_s")}
    lat, lat_before = f.radians("lat"), f.radians(before["lat"])
    d_lon = f.radians("lon") - f.radians(before["lon"])
    chord = f.pow(f.sin((lat - lat_before) / 2), 2) + f.cos(lat) * f.cos(lat_before) * f.pow(
        f.sin(d_lon / 2), 2
    )
    seconds = f.col("event_time_s") - before["event_time_s"]
    kmh = 2 * EARTH_KM * f.asin(f.sqrt(chord)) / (seconds / 3_600)
    cell = f.floor(f.col("lat") / CELL_LAT_DEG) * 100_000 + f.floor(f.col("lon") / CELL_LON_DEG)
    return (
        fixes.select(
            f.timestamp_seconds("event_time_s").alias("event_time"),
            f.timestamp_seconds("recv_time_s").alias("recv_time"),
            "poll",
            f.col("vehicle").cast("int").alias("vehicle"),
            "line",
            cell.cast("long").alias("cell"),
            kmh.alias("kmh"),
            seconds.alias("seconds"),
        )
        # The first fix of a trip has no speed; after a long silence nobody knows it.
        .filter(f.col("seconds").between(1, TRIP_GAP_S))
        .orderBy("recv_time", "poll", "vehicle", "event_time")
        .drop("poll", "seconds")
    )
