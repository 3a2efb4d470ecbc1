"""Claims hold by their own words; a tie is said beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.frame import Claim, Options, Result, held
from benchmarks.sltuner.contest import draw
from benchmarks.sltuner.deadline import HEADER, OURS, Outcome, judge
from benchmarks.sltuner.floors import FLOORS, Floor, floor_of


def outcome(policy: str, slack_ready: int, *, latency_s: float = 1.0) -> Outcome:
    """A run of one judged second."""
    return Outcome(
        policy,
        deadline_s=6.0,
        first_second=0,
        latency_s=np.array([latency_s]),
        slack_s={},
        slack_ready=np.array([float(slack_ready)]),
        detected=np.array([100.0]),
        events=1_000,
        late=0,
        late_dropped=0,
        samples=(),
    )


def judged(ours: int, *rivals: Outcome, floor: Floor | None = None) -> Result:
    result = Result("", HEADER)
    judge(result, [outcome(OURS, ours), *rivals], floor=floor)
    return result


def claim(result: Result, part: str) -> Claim:
    (found,) = [one for one in result.claims if part in one.name]
    return found


@pytest.mark.parametrize(("ours", "holds"), [(99, True), (100, False), (101, False)])
def test_fewer_than_every_rival_means_fewer(ours: int, *, holds: bool) -> None:
    result = judged(ours, outcome("a", 100), outcome("b", 120))
    assert claim(result, "fewer than every rival").holds is holds


def test_a_rival_that_breaks_the_deadline_is_none() -> None:
    result = judged(99, outcome("a", 50, latency_s=7.0), outcome("b", 100))
    assert claim(result, "fewer than every rival").holds


def test_a_tie_is_said_and_changes_no_claim() -> None:
    result = judged(1_004, outcome("a", 1_000))
    assert "a tie" in result.notes[0]
    assert not claim(result, "fewer than every rival").holds
    assert "1.0% more" in judged(1_010, outcome("a", 1_000)).notes[0]


@pytest.mark.parametrize(("ours", "holds"), [(135, True), (136, False)])
def test_near_the_floor_is_a_quarter_and_a_hundredth_of_the_events(ours: int, holds: bool) -> None:
    result = judged(ours, floor=Floor(100, detected=105))
    assert claim(result, "1.25 clairvoyant").holds is holds
    assert claim(result, "detected events").value == pytest.approx(100 / 105)


def test_a_floor_is_known_of_full_runs_of_one_seed() -> None:
    name = next(iter(FLOORS))
    assert floor_of(name, Options()) == FLOORS[name]
    assert floor_of(name, Options(quick=True)) is None
    assert floor_of(name, Options(seed=2)) is None
    assert floor_of("another", Options()) is None


def test_of_several_seeds_it_is_said_on_how_many_a_claim_holds() -> None:
    results = [Result("", []), Result("", [])]
    for result, value in zip(results, (1.0, 3.0), strict=True):
        result.claims.append(Claim("wins", value, "<=", 2.0))
    assert held("x", results, first_seed=1)[1] == "holds on 1 of 2: wins: 1.00, 3.00"


def test_any_number_of_policies_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcomes = [replace(outcome(f"rival {n}", n), slack_s={"gate": np.ones(1)}) for n in range(30)]
    assert draw(outcomes, "many").stat().st_size > 0
