"""What `recovery` counts and claims: faults that came, gaps after them, jobs that differ."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.engine.recovery.faults import FAULTS
from benchmarks.engine.recovery.run import result_of
from benchmarks.engine.recovery.trial import Outcome, longest_gap
from benchmarks.frame import Claim, Result

INJECTED = "faults that were injected"


def result(outcomes: Sequence[Outcome], names: Sequence[str]) -> Result:
    return result_of(outcomes, names, away=(), left=(), took_min=1.0)


def claim(shown: Result, words: str) -> Claim:
    (own,) = [claim for claim in shown.claims if words in claim.name]
    return own


def test_a_run_fails_in_which_no_fault_came() -> None:
    assert not claim(result([], ["join"]), INJECTED).holds
    early = Outcome("join", problems=["no row within 30 s"])
    assert not claim(result([early], ["join"]), INJECTED).holds
    assert claim(result([Outcome("join", is_injected=True)], ["join"]), INJECTED).value == 1


def test_a_fault_that_came_too_late_is_named_and_spoils_no_job() -> None:
    late = Outcome("tuner", missed="the job is done already")
    shown = result([late, Outcome("join", is_injected=True, gap_s=0.3)], ["join", "tuner"])
    assert not claim(shown, INJECTED).holds
    assert claim(shown, "not as without a fault").holds
    assert "tuner: no fault came: the job is done already" in shown.notes


def test_a_gap_is_the_longest_whose_end_is_after_the_fault() -> None:
    commits = [0.0, 5.0, 5.5, 6.0, 8.0, 8.1]
    assert longest_gap(commits, 5.2) == (2.0, 0.0)
    assert longest_gap(commits, 4.9) == (5.0, 0.0), "the fault fell into it"
    assert longest_gap(commits, 9.0) == (None, 0.0)


def test_a_gap_is_measured_by_the_interval_that_was_then() -> None:
    commits = [0.0, 1.0, 5.0, 7.5, 8.5]
    intervals = [(0.5, 1.0), (2.0, 3.5), (5.5, 1.0), (8.0, 9.0)]
    assert longest_gap(commits, 0.5, intervals[:3]) == (4.0, 3.5)
    assert longest_gap(commits, 5.0, [(4.0, 1.0)]) == (2.5, 1.0)
    assert longest_gap(commits, 5.5, intervals) == (2.5, 3.5)


def test_a_fault_that_could_not_be_measured_keeps_its_claim_open() -> None:
    link = claim(result([], ["link"]), "cut link")
    assert link.value is None
    assert not link.holds


def test_a_job_that_a_halt_or_a_full_disk_sends_back_is_counted() -> None:
    outcomes = [
        Outcome("halt", is_injected=True, gap_s=5.1),
        Outcome("disk", is_injected=True, gap_s=0.2, recoveries=1),
    ]
    shown = result(outcomes, ["halt", "disk"])
    assert claim(shown, "SIGSTOP of 5 s").value == 0
    assert claim(shown, "a full disk").value == 1


def test_each_kill_counts_among_the_kills() -> None:
    outcomes = [
        Outcome("join", is_injected=True, gap_s=0.4),
        Outcome("coordinator", is_injected=True, gap_s=3.0),
    ]
    shown = result(outcomes, ["join", "coordinator"])
    assert not claim(shown, "kill: the same, p99").holds


def test_all_faults_have_a_full_run() -> None:
    assert {name for name, fault in FAULTS.items() if fault.times < 12} == {"silence", "disk"}
