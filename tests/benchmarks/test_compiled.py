"""`compiled`: the C program finds what a literal join finds, and what is made of its figures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.engine.compiled import BARE, C_EACH, OURS, C, Turns, claims_of
from benchmarks.engine.compiled_parts import (
    COMPILED,
    JOIN,
    SINK,
    SLEEPING,
    SOURCES,
    left_without,
    parts_of,
)
from benchmarks.engine.compiled_run import (
    Flow,
    Measured,
    compiled,
    compiler,
    flow_of,
    in_c,
    ours,
    write_rows,
)
from benchmarks.engine.join_latency import Run
from benchmarks.engine.running import Arrays
from benchmarks.engine.workload import MS, WITHIN_NS, Mapped
from benchmarks.frame import NotHereError

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler, cc")
RATE = 2_000


@pytest.fixture(scope="module")
def program() -> Iterator[Path]:
    with compiled() as path:
        yield path


def side(
    rng: np.random.Generator, rows: int, value: str, name: str, *, over: float, from_ms: int
) -> Arrays:
    """Three areas, ties, event times just a window apart, values about the filter's bound."""
    arrival = np.sort(rng.integers(from_ms * MS, 500 * MS, rows))
    arrival[0] = 0
    return {
        "ts": np.sort(rng.integers(0, 40, rows)) * 500,
        "arrival": arrival,
        "area": rng.integers(0, 3, rows).astype(np.int32),
        value: (int(over) + rng.integers(-3, 3, rows)).astype(np.int32),
        name: np.arange(rows, dtype=np.int32),
    }


def small_flow(folder: Path, seed: int) -> Flow:
    """Rows that are due within half a second, the readings seconds of event time ahead."""
    rng = np.random.default_rng(seed)
    late, busy = Run(RATE, "on arrival", 0, 1, {}, {}, (Mapped(""), Mapped(""))).over
    bus = side(rng, 301, "delay_s", "vehicle", over=late, from_ms=300)
    loop = side(rng, 204, "flow", "sensor", over=busy, from_ms=0)
    write_rows(folder / "rows", bus, loop)
    run = Run(RATE, "on arrival", 0, 1, bus, loop, (Mapped(""), Mapped("")))
    return Flow(run, folder / "rows")


def literal_pairs(run: Run) -> int:
    """Count the pairs by looking at each row beside each other one."""
    bus, loop, (late, busy) = run.bus, run.loop, run.over
    return sum(
        bool(
            bus["delay_s"][n] > late
            and loop["flow"][m] > busy
            and bus["area"][n] == loop["area"][m]
            and abs(bus["ts"][n] - loop["ts"][m]) * MS <= WITHIN_NS
        )
        for n in range(len(bus["ts"]))
        for m in range(len(loop["ts"]))
    )


@needs_cc
@pytest.mark.parametrize("gap_ns", [0, 250_000])
def test_the_c_program_finds_each_pair_of_a_literal_join_once(
    program: Path, tmp_path: Path, gap_ns: int
) -> None:
    flow = small_flow(tmp_path, seed=3)
    found = in_c(program, flow, gap_ns=gap_ns)  # compares the rows with the offline query's
    assert found.results == literal_pairs(flow.run) > 100
    assert len(found.latency_ms) == found.results  # all are due in the window
    assert (found.latency_ms >= 0).all()


@needs_cc
def test_what_only_sleeps_gives_no_results_and_sleeps_as_often(
    program: Path, tmp_path: Path
) -> None:
    flow = small_flow(tmp_path, seed=3)
    works, sleeps = (in_c(program, flow, gap_ns=0, works=one) for one in (True, False))
    assert sleeps.results == 0
    assert sleeps.sleeps_per_s == pytest.approx(works.sleeps_per_s, rel=0.5)


@needs_cc
def test_our_slot_has_as_many_results_as_c_and_its_parts_are_timed(
    program: Path, tmp_path: Path
) -> None:
    flow = flow_of(tmp_path, rate=RATE, warm_up_s=1, seconds=1, seed=1)
    timed = ours(flow, "parts")
    assert timed.results == in_c(program, flow, gap_ns=250_000).results > 0
    parts = parts_of(timed, cores=0.1, sleeping=0.04)
    assert sum(part.cores for part in parts.values()) == pytest.approx(0.1)
    assert all(part.cores > 0 for name, part in parts.items() if name in COMPILED)
    assert parts[SLEEPING].cores == 0.04


def test_what_is_left_without_parts_is_less_by_what_these_take() -> None:
    spent = {"step": 200, "step with rows": 100, "take": 80, "take with rows": 20}
    spent |= {"stage source": 120, "stage source with rows": 30, "stage join": 10}
    spent |= {"stage join with rows": 40, "stage sink with rows": 10, "handed": 20, "reached": 6}
    parts_ns = {name: ms * MS for name, ms in spent.items()}
    parts_ns |= {f"{name}, calls": 10 for name in spent}
    timed = Measured(0.8, 100.0, np.empty(0), 0, parts_ns, 1.0)
    parts = parts_of(timed, cores=0.4, sleeping=0.1)  # half as many cores as where it was timed
    assert parts[SOURCES].cores == pytest.approx(0.05)
    assert parts[JOIN].cores == pytest.approx(0.025)
    assert parts[SINK].cores == pytest.approx(0.015)
    assert parts[SOURCES].calls_per_s == 20
    assert parts[JOIN].in_latency_ms == pytest.approx(4.0)  # of calls that gave rows
    assert parts[SINK].in_latency_ms == pytest.approx(1.0 + 0.6)  # until it is handed over
    left = left_without(parts, COMPILED["these three"], p50_ms=20.0)
    assert left["cores"] == pytest.approx(0.4 - 0.05 - 0.025 - 0.015)
    assert left["p50_ms"] == pytest.approx(20.0 - 2.0 - 4.0 - 1.6)
    all_of_it = left_without(parts, COMPILED["all that the loop calls"], p50_ms=20.0)
    assert all_of_it["cores"] == pytest.approx(0.4 - 0.15 - 0.01)
    around_ms = 1.0 + 3 * 2.0  # a source's stage, and the slot around each of three slices
    assert all_of_it["p50_ms"] == pytest.approx(left["p50_ms"] - around_ms)


def turns(cores: float, p50_ms: float) -> Turns:
    return Turns([cores] * 3, [3_000.0] * 3, [p50_ms] * 3, [3.0] * 3, [7] * 3)


def test_both_targets_are_kept_at_once_only_by_a_way_that_keeps_each() -> None:
    found = {OURS: turns(0.3, 0.5), C: turns(0.1, 0.3), C_EACH: turns(0.2, 0.1)}
    claims = {claim.name: claim for claim in claims_of(found, 10_000)}
    at_once = {name: claim for name, claim in claims.items() if "at once" in name}
    in_c_at_once, ours_at_once = at_once.values()
    assert claims["10,000/s, C, looks as ours: cores"].holds
    assert not claims["10,000/s, C, looks as ours: p50 ms"].holds
    assert not in_c_at_once.holds
    assert in_c_at_once.value == pytest.approx(0.2 / 0.15)
    assert ours_at_once.value == pytest.approx(0.5 / 0.2)
    found[C_EACH] = turns(0.12, 0.1)
    assert any(claim.holds for claim in claims_of(found, 10_000) if "at once, in C" in claim.name)


def test_a_sleep_costs_what_is_used_by_the_number_of_sleeps() -> None:
    assert BARE != C
    assert turns(0.06, 0.1).us_each == pytest.approx(20.0)


def test_without_a_compiler_it_says_so_and_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotHereError, match="needs a C compiler"):
        compiler()
    assert main(["compiled", "--quick"]) == 1
    assert "compiled: left out: it compiles a C program" in capsys.readouterr().err
