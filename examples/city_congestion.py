"""Where is traffic stuck? Late buses joined with busy loops, in a generated city ([ssg] §6).

Run it alone, without Spark:      slackwater run examples/city_congestion.py --nodes 3
With Spark in front of it:        make demo
On a cluster, for 15 s:           slackwater submit examples/city_congestion.py:live --address …
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import slackwater as sw
from examples.city import City, generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE_S = 300
BUSY = 1_000
LIVE = City(seconds=15)


def build(
    buses: sw.connectors.Input | None = None,
    loops: sw.connectors.Input | None = None,
    *,
    speed: float | None = None,
    slack: str | None = None,
    out: sw.connectors.Output | None = None,
) -> sw.Dataflow:
    """Return the flow; without inputs it carries a small city of its own."""
    if buses is None or loops is None:
        buses, loops = carried(City(seconds=20))
    flow = sw.Dataflow("city-congestion", slack=slack)
    late = flow.source(
        "buses", buses, event_time="event_time", arrival="arrival", speed=speed
    ).filter(sw.col("delay_s") > LATE_S)
    busy = flow.source(
        "loops", loops, event_time="event_time", arrival="arrival", speed=speed
    ).filter(sw.col("flow") > BUSY)
    jams = late.join(busy, on="area", within="5s", name="congestion")
    jams.select("area", "vehicle", "delay_s", "loop", "flow").sink("jams", out or sw.collect_sink())
    return flow


def live() -> sw.Dataflow:
    """Return the flow over 15 s of a city, at the speed of the clock."""
    buses, loops = carried(LIVE)
    return build(buses, loops, speed=1.0)


def carried(city: City) -> tuple[sw.connectors.Input, sw.connectors.Input]:
    """Return buses and loops as tables that travel with the flow, whatever node they run on."""
    with tempfile.TemporaryDirectory(prefix="slackwater-city-") as folder:
        buses, loops = (sw.table(pq.read_table(path)) for path in generate(city, Path(folder)))
    return buses, loops


def prepare(spark: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    """Let Spark read both streams, drop what is unusable, and put each in order of arrival."""
    frames = []
    for name in ("buses", "loops"):
        frame = spark.read.parquet(str(folder / f"{name}.parquet"))
        usable = frame.na.drop().filter("area >= 0")
        frames.append(usable.orderBy("arrival", "event_time", frame.columns[2]))
    return frames[0], frames[1]
