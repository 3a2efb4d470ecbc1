"""`hop`: what its ratio is of, and what is said where no hosts can be made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.engine import hop
from benchmarks.engine.hop_ends import BETWEEN_HOSTS, OURS, RAY, summary

MS = 1_000_000


def test_the_ratio_is_of_rays_quicker_way_to_the_channel_that_a_job_would_use() -> None:
    arrow, arrays = RAY
    p50_ms = {OURS: 0.5, BETWEEN_HOSTS: 0.1, arrow: 4.0, arrays: 2.0}
    ways = {way: {"p50_ms": ms} for way, ms in p50_ms.items()}
    assert hop.times_quicker(ways) == pytest.approx(4.0)


def test_a_summary_has_the_median_of_all_round_trips_and_of_each_turn() -> None:
    found = summary(np.array([[1, 2, 3], [7, 8, 9]]) * MS)
    assert found["p50_ms"] == pytest.approx(5.0)
    assert found["max_ms"] == pytest.approx(9.0)
    assert found["p50_by_turn_ms"] == pytest.approx([2.0, 8.0])


def test_where_no_hosts_can_be_made_a_note_says_why_and_nothing_is_claimed_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hop, "why_not", lambda: "there is no root here")
    result: Any = hop.Result("", [])
    hop.add_hosts(result, turns=1, trips=1)
    assert result.claims == []
    assert result.rows == []
    assert "there is no root here" in result.notes[0]
