"""The main job as `make demo` runs it, Spark included, against the same query worked offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from benchmarks.offline import pairs_within
from examples import city_congestion, own_policy, warsaw_crawl
from tests.support.flows import city_tables, offline_congestion, sorted_rows
from tests.support.processes import QUICK_JVM

ROOT = Path(__file__).resolve().parents[2]
NS = 1_000_000_000


def run_demo(*arguments: str) -> str:
    """Run the demo in a process of its own and return what it printed."""
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "examples.demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120", "JDK_JAVA_OPTIONS": QUICK_JVM},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for noise in ("WARN", "Traceback", "raylet", "log4j"):
        assert noise not in done.stdout + done.stderr
    return done.stdout


def test_the_city_generates_and_runs_by_itself() -> None:
    flow = city_congestion.build()
    report = sw.Simulation().submit(flow).wait()
    assert report.sinks[0].rows > 0
    assert report.ledger.is_balanced


def test_the_page_on_deadlines_runs_as_it_is_printed(tmp_path: Path) -> None:
    page = (ROOT / "docs/deadlines.md").read_text(encoding="utf-8")
    flow, history, policy = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert policy in (ROOT / "examples/own_policy.py").read_text(encoding="utf-8")
    assert flow.count("SECONDS, EVERY_MS = 90, 10") == 1
    shorter = flow.replace("SECONDS, EVERY_MS = 90, 10", "SECONDS, EVERY_MS = 6, 50")
    (tmp_path / "slow_buses.py").write_text(shorter, encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - our own page
        [sys.executable, "-c", history],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "samples of 1 earlier jobs" in done.stdout
    assert (tmp_path / "jams.jsonl").stat().st_size > 0


def test_a_policy_of_ones_own_keeps_its_deadline() -> None:
    flow = own_policy.build()
    with sw.Simulation() as nodes:
        report = nodes.submit(flow, tuning=sw.Tuning(policy=own_policy.Leftover)).wait()
    assert report.ledger.is_balanced
    tuning = report.tuning
    assert tuning is not None
    assert (tuning.policy, tuning.over, tuning.errors) == ("leftover", 0, 0)
    assert tuning.gates[0].by == "leftover"
    assert tuning.gates[0].slack_ready > 0


@pytest.mark.ray
@pytest.mark.spark
def test_the_demo_finds_what_the_offline_query_finds(tmp_path: Path) -> None:
    told = run_demo("--seconds", "20", "--speed", "20", "--out", str(tmp_path / "out"))
    assert "balanced" in told
    found = pq.read_table(tmp_path / "out" / "results")
    city = city_tables(tmp_path, seconds=20.0, rate=11.0, areas=200)
    assert sorted_rows(found) == offline_congestion(*city)
    assert len(found) > 100
    assert (tmp_path / "out" / "latency.png").stat().st_size > 10_000


@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.shared
def test_warsaw_jams_are_those_of_the_offline_query(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "bus-warsaw-2024"
    run_demo("--data", str(folder), "--speed", "1000", "--out", str(tmp_path / "out"))
    found = pq.read_table(tmp_path / "out" / "results").to_pandas()
    pairs = offline_jams(sorted(folder.glob("*.parquet"))[0])
    columns = ["cell", "vehicle", "vehicle_right"]
    counted = found.groupby(columns).size().sort_index()
    expected = pairs.groupby(columns).size().sort_index()
    assert len(found) == len(pairs)
    assert counted.equals(expected)


def offline_jams(path: Path) -> Any:
    """Return cell, vehicle, vehicle_right of every pair, worked out with pandas and NumPy."""
    fixes = pq.read_table(path).to_pandas()
    fixes = fixes[fixes.recv_time_s - fixes.event_time_s <= warsaw_crawl.STALE_S]
    fixes = fixes.sort_values(["vehicle", "event_time_s"], kind="stable")
    trip = fixes.groupby("vehicle")
    lat, lon = (np.radians(fixes[name].astype("float64")) for name in ("lat", "lon"))
    before = trip[["lat", "lon", "event_time_s"]].shift()
    lat_before, lon_before = (np.radians(before[n].astype("float64")) for n in ("lat", "lon"))
    chord = (
        np.sin((lat - lat_before) / 2) ** 2
        + np.cos(lat) * np.cos(lat_before) * np.sin((lon - lon_before) / 2) ** 2
    )
    seconds = fixes.event_time_s - before.event_time_s
    kmh = 2 * warsaw_crawl.EARTH_KM * np.arcsin(np.sqrt(chord)) / (seconds / 3_600)
    cell = np.floor(fixes.lat.astype("float64") / warsaw_crawl.CELL_LAT_DEG) * 100_000 + np.floor(
        fixes.lon.astype("float64") / warsaw_crawl.CELL_LON_DEG
    )
    slow = fixes.assign(cell=cell.astype("int64"), vehicle=fixes.vehicle.astype(int))[
        seconds.between(1, warsaw_crawl.TRIP_GAP_S) & (kmh < warsaw_crawl.CRAWL_KMH)
    ]
    times = slow.event_time_s.to_numpy() * NS
    codes = np.unique(slow.cell.to_numpy(), return_inverse=True)[1].astype(np.int64)
    # Times from the start, so that cell and time fit one axis.
    left, right = pairs_within(times - times.min(), codes, times - times.min(), codes, 60 * NS)
    vehicle, line = slow.vehicle.to_numpy(), slow.line.astype(str).to_numpy()
    kept = (vehicle[left] < vehicle[right]) & (line[left] != line[right])
    pairs = slow[["cell", "vehicle"]].iloc[left[kept]].reset_index(drop=True)
    return pairs.assign(vehicle_right=vehicle[right[kept]])
