"""Fingerprints of flows: what a later job may change, and what not."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.recovery.fingerprint import fingerprint_of
from slackwater.runtime.recovery.manifest import differences

PLACED = {"rides": "node-1", "sums": "node-1", "out": "node-1"}


def planned(
    *,
    nodes: int = 3,
    speed: float = 1.0,
    column: str = "n",
    replicas: int | None = None,
    every: str = "10s",
    ordered: bool = True,
    limits: Limits | None = None,
    placement: dict[str, str] | None = None,
    **options: Any,
) -> Plan:
    flow = sw.Dataflow("city", **options)
    rows = sw.table({"ts": [1, 2, 3], "bus": ["a", "b", "c"], column: [1, 2, 3]})
    rides = flow.source("rides", rows, event_time="ts", time_unit="s", speed=speed)
    sums = rides.filter(sw.col(column) > 0).aggregate(
        {"sum": sw.sum(column)}, by="bus", window=sw.tumbling(every), replicas=replicas, name="sums"
    )
    sums.sink("out", sw.collect_sink(), ordered=ordered)
    with sw.Simulation(nodes) as simulation:
        return simulation.plan(flow, limits=limits, placement=placement)


def changed(then: Plan, now: Plan) -> dict[str, list[str]]:
    return differences(fingerprint_of(then), fingerprint_of(now))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"nodes": 1}, {}),
        ({"placement": PLACED}, {}),
        ({"limits": Limits(most_kept_rows=7, credit_rows=8)}, {}),
        ({"limits": Limits(fuse=False)}, {"settings": ["fuse"], "stages": ["filter-1"]}),
        ({"speed": 2.0}, {"speeds": ["rides"]}),
        ({"ordered": False}, {"orders": ["out"]}),
        ({"deadline": "1s"}, {"settings": ["deadline"], "steps": ["sums"]}),
        ({"every": "20s"}, {"steps": ["sums"]}),
        ({"slack": "1s"}, {"steps": ["sums"]}),
    ],
)
def test_a_fingerprint_differs_where_saved_rows_would_mean_another_thing(
    options: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    assert changed(planned(), planned(**options)) == expected


def test_a_column_of_another_name_is_in_the_schemas() -> None:
    differ = changed(planned(), planned(column="count"))
    assert "rides" in differ["schemas"]
    assert "sums" in differ["steps"]


def test_replicas_are_named_by_their_step_and_number() -> None:
    differ = changed(planned(replicas=2), planned(replicas=3))
    assert differ == {"stages": ["sums"]}
    stages = fingerprint_of(planned(replicas=3))["stages"]
    assert stages == {"rides": "1", "sums": "3", "out": "1"}
