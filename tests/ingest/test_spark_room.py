"""Advice on a Spark session that did not start depends on the room there is."""

from __future__ import annotations

import re

import pytest

from slackwater.ingest.session import _bytes_of, way_out

GB = 2**30


@pytest.mark.parametrize(
    ("free", "said"),
    [
        ({"CPU": 0.0, "memory": 9 * GB}, "too little CPU: add nodes, or ask for less"),
        ({"CPU": 3.0, "memory": GB / 2}, "too little memory: add nodes, or ask for less"),
        ({"memory": 0.0}, "too little CPU and memory"),
        ({"CPU": 3.0, "memory": 9 * GB}, r"room for one more.*spark\(start_limit='240s'\)"),
    ],
)
def test_nodes_are_advised_only_where_room_is_what_lacks(free: dict[str, float], said: str) -> None:
    assert re.search(said, way_out(free, {"CPU": 1.0, "memory": float(GB)}, 120.0))


def test_a_size_of_memory_is_so_many_bytes() -> None:
    assert [_bytes_of(size) for size in ("512m", "2g", "1GB", "7k")] == [GB // 2, 2 * GB, GB, 7168]
