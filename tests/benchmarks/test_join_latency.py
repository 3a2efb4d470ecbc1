"""`join-latency` beside bare messages: their schedule, what is claimed, and that none gets lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.engine.bare_message import ROLES, bare_messages
from benchmarks.engine.join_latency import MODES, Run, paces_of
from benchmarks.engine.latency_claims import latency_claims, ratio_to_bare, run_name
from benchmarks.engine.running import PLACES, arrays_of, join_offline
from benchmarks.engine.workload import Mapped, paced_tables

MS = 1_000_000


@pytest.fixture(scope="module")
def run_of_4_s() -> Run:
    """1,000 events a second, of which the first second does not count."""
    bus, loop = map(arrays_of, paced_tables(1, rate=1_000, seconds=4))
    return Run(1_000, "on arrival", 1, 3, bus, loop, (Mapped(""), Mapped("")))


@pytest.mark.parametrize("place", ROLES)
def test_each_bare_message_arrives_and_none_before_it_is_due(place: str, tmp_path: Path) -> None:
    paces = {"slow": np.arange(5) * 20 * MS + 7, "quick": np.arange(50) * MS}
    took_ns = bare_messages(place, paces, tmp_path / "b")
    assert {pace: len(times) for pace, times in took_ns.items()} == {"slow": 5, "quick": 50}
    assert all((times > 0).all() for times in took_ns.values())


def test_bare_messages_are_due_when_what_counts_arrives(run_of_4_s: Run) -> None:
    run = run_of_4_s
    paces = paces_of(run, "one slot", (2.0, 1.0))
    left, right = join_offline(run.bus, run.loop, over=run.over)
    completes = np.maximum(run.bus["arrival"][left], run.loop["arrival"][right])
    wanted = completes[(completes >= 1_000 * MS) & (completes < 3_000 * MS)]
    assert len(wanted)
    assert set(paces["results"].tolist()) == set(wanted.tolist())
    arrivals = np.concatenate([run.bus["arrival"], run.loop["arrival"]])
    wanted = arrivals[(arrivals >= 1_000 * MS) & (arrivals < 2_000 * MS)]
    assert paces["rows"].tolist() == sorted(set(wanted.tolist()))


def test_on_three_nodes_a_message_is_due_when_one_source_has_a_row(run_of_4_s: Run) -> None:
    paces = paces_of(run_of_4_s, "three nodes", (2.0, 1.0))
    assert (np.diff(paces["rows"]) == 2 * MS).all()  # half of 1,000 a second
    assert len(paces["rows"]) == 500


def test_the_ratio_is_to_the_mean_of_the_messages_before_and_after() -> None:
    assert ratio_to_bare(0.6, [0.1, 0.3]) == pytest.approx(3.0)


def test_claims_fail_where_the_figures_do() -> None:
    claims = {claim.name: claim for claim in latency_claims(_figures(p50_ms=0.3))}
    one, three = "on arrival, one slot, 10k/s", "on arrival, three nodes, 10k/s"
    assert not claims[f"{one}: p50 ms"].holds  # 0.3 > 0.2
    assert claims[f"{three}: p50 ms"].holds  # 0.3 <= 0.6
    assert claims[f"{one}: p50 / p50 of a bare message, as many as results"].value == pytest.approx(
        3.0
    )
    assert not claims[f"{one}: p50 / p50 of a bare message, as many as rows"].holds
    assert not claims[f"{three}: p99 ms"].holds
    over_floor = claims["in order, one slot, 10k/s: p50 ms − floor"]
    assert over_floor.value == pytest.approx(0.3)
    missing = "pairs missing, of all that the offline query finds"
    assert not claims[f"{run_name('on arrival', 'three nodes', 10_000)}: {missing}"].holds
    assert not any("RSS" in name for name in claims)  # nobody measured it


def _figures(*, p50_ms: float) -> dict[str, Any]:
    times = {"p50_ms": p50_ms, "p99_ms": 3.1}
    runs: dict[str, Any] = {
        run_name(mode, place, 10_000): {
            "missing": int(place == "three nodes"),
            "stimulus": times,
            "floor: stimulus to determined": {"p50_ms": 0.0},
        }
        for mode in MODES
        for place in PLACES
    }
    bare = {"results": {"p50_ms": [0.1, 0.1]}, "rows": {"p50_ms": [0.04, 0.05]}}
    return runs | {f"bare, {place}": bare for place in PLACES}
