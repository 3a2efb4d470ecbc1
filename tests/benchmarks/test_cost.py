"""What `cost` counts and compares: the kernel's files, its inputs, ratios of two commits."""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.engine import before
from benchmarks.engine.before import HOW, Child, before_ref, checkout, in_turns, ratios
from benchmarks.engine.before_after import figures_of, geometric_mean, slower
from benchmarks.engine.before_after import run as compare
from benchmarks.engine.live import Live, Silent, name_thread
from benchmarks.engine.threads import (
    RAYS_MAIN,
    TICK_NS,
    ThreadCounts,
    cpu_of_stat_ns,
    group_of,
    grouped,
    switches_of,
    thread_counts,
)
from benchmarks.engine.wakes import by_thread, cores_of, said_of_wakes
from benchmarks.engine.workload import paced_tables, write
from benchmarks.frame import NotHereError, Options, Spread, WrongResultError
from slackwater.runtime.sources.spec import END_OF_INPUT

needs_git = pytest.mark.skipif(
    shutil.which("git") is None or not (before.ROOT / ".git").exists(),
    reason="not a clone, or no git",
)


def test_the_cpu_of_a_stat_file_is_read_behind_a_name_with_brackets_and_blanks() -> None:
    text = "7 (ray::Slot) (2) x) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 9 0 100"
    assert cpu_of_stat_ns(text) == 175 * TICK_NS


def test_context_switches_are_read_from_a_status_file() -> None:
    text = "Name:\tx: y\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"
    assert switches_of(text) == (12, 3)


def test_the_kernel_counts_a_thread_that_worked_and_slept_under_the_name_that_it_took() -> None:
    goes_on, has_worked = threading.Event(), threading.Event()

    def work() -> None:
        name_thread("slot-source")
        while time.thread_time_ns() < 20_000_000:
            pass
        has_worked.set()
        goes_on.wait()

    thread = threading.Thread(target=work)
    before = thread_counts(os.getpid())
    thread.start()
    try:
        assert has_worked.wait(10)
        used = grouped(before, thread_counts(os.getpid()), group=group_of)
    finally:
        goes_on.set()
        thread.join()
    assert used["source"].cpu_ns >= 20_000_000


def test_a_new_thread_counts_from_nothing_and_one_that_went_is_left_out() -> None:
    before = {1: ("a", ThreadCounts(5, 1, 1)), 2: ("b", ThreadCounts(7, 0, 0))}
    after = {1: ("a", ThreadCounts(8, 3, 1)), 3: ("a", ThreadCounts(10, 2, 4))}
    assert grouped(before, after, group=str) == {"a": ThreadCounts(13, 4, 4)}


def test_what_wakes_is_told_by_thread_and_who_seldom_does_together() -> None:
    before = {1: ("a", ThreadCounts(5, 1, 1))}
    used = ThreadCounts(2_000_000, 40, 0)
    after = {n: (name, used) for n, name in enumerate(["a", "b", "b"], 1)} | {9: ("c", used)}
    after[9] = ("c", ThreadCounts(8_000, 1, 0))
    wakes = by_thread(before, after, seconds=4.0)
    assert list(wakes) == ["b (2)", "a", "others"]
    assert wakes["b (2)"] == {"cores": 0.001, "sleeps_per_s": 20.0}
    assert wakes["others"]["sleeps_per_s"] == 0.25
    assert cores_of(wakes) == pytest.approx(0.0015, rel=0.01)
    assert said_of_wakes(wakes).startswith("0.0015: b (2) 0.0010 (20/s), a 0.0005 (10/s), others ")


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("slot-loop", "loop"),
        ("slot-source", "source"),
        ("ZMQbg/IO/0", "libzmq"),
        ("ray::SlotActor", "Python, unnamed"),
        ("worker.io", "Ray's own"),
        (RAYS_MAIN, "Ray's own"),
    ],
)
def test_threads_are_grouped_by_the_kernels_name_for_them(name: str, group: str) -> None:
    assert group_of(name) == group


def test_a_live_input_hands_each_row_over_once_and_none_before_it_is_due(tmp_path: Path) -> None:
    rows, _ = paced_tables(3, rate=200, seconds=4)
    path = write(rows, tmp_path / "rows").path
    start_ns = time.time_ns() - 2_000_000_000
    reader = Live(path, start_ns).open()
    found = []
    while True:
        polled = reader.poll()
        now_ns = time.time_ns()
        if polled is None:
            continue
        if polled is END_OF_INPUT or now_ns > start_ns + 2_100_000_000:
            break
        assert isinstance(polled, pa.RecordBatch)
        due_ns = polled["arrival"].to_numpy().astype(np.int64) + start_ns
        assert (due_ns <= now_ns).all()
        found.append(polled)
    together = pa.Table.from_batches(found)
    assert together.equals(rows.slice(0, len(together)))


def test_a_silent_input_has_nothing_and_then_its_end(tmp_path: Path) -> None:
    rows, _ = paced_tables(3, rate=200, seconds=1)
    path = write(rows, tmp_path / "rows").path
    assert Silent(path, 60, waits=False).open().poll() is None
    assert Silent(path, 0, waits=False).open().poll() is END_OF_INPUT


def test_two_commits_are_measured_in_turns_and_who_begins_changes() -> None:
    order = []

    def measure(name: str) -> dict[str, float]:
        order.append(name)
        return {"p50": float(len(order))}

    pairs = in_turns(lambda: measure("before"), lambda: measure("now"), times=3)
    assert order == ["before", "now", "now", "before", "before", "now"]
    assert pairs == [({"p50": 1}, {"p50": 2}), ({"p50": 4}, {"p50": 3}), ({"p50": 5}, {"p50": 6})]


def test_ratios_are_of_each_pair_and_of_figures_that_both_have() -> None:
    pairs = [
        ({"p50": 2.0, "zero": 0.0, "old": 1.0}, {"p50": 1.0, "zero": 1.0}),
        ({"p50": 2.0, "zero": 0.0, "old": 1.0}, {"p50": 4.0, "zero": 1.0}),
        ({"p50": 2.0, "zero": 0.0, "old": 1.0}, {"p50": 3.0, "zero": 1.0}),
    ]
    found = ratios(pairs)
    assert set(found) == {"p50"}
    assert (found["p50"].median, found["p50"].least, found["p50"].most) == (1.5, 0.5, 2.0)


@needs_git
def test_no_commit_is_named_by_default_and_one_that_there_is_not_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("BEFORE", raising=False)
    assert before_ref() is None
    with pytest.raises(NotHereError, match="no-such-commit") as refused, checkout("no-such-commit"):
        raise AssertionError("there is no such commit")
    assert HOW in str(refused.value)


def test_figures_are_found_by_their_whole_name_and_only_speeds_and_times() -> None:
    figures = {
        "sparse": {
            "one slot_million_per_s": {"median": 4.0, "min": 3, "max": 5, "repetitions": 3},
            "one slot_ns_per_row": {"bus": 12.0},
            "results": 77,
        },
        "3 hosts": {"10000": {"p50_ms": 0.5, "error_ms": 0.1, "missing": 0}},
    }
    assert dict(figures_of(figures)) == {
        "sparse, one slot_million_per_s": 4.0,
        "3 hosts, 10000, p50_ms": 0.5,
    }


def test_half_the_speed_and_twice_the_time_are_both_twice_as_slow() -> None:
    speed = slower("sparse, one slot_million_per_s", Spread(0.5, 0.25, 1.0, 3))
    assert (speed.median, speed.least, speed.most) == (2.0, 1.0, 4.0)
    assert slower("p50_ms", Spread(2.0, 1.0, 4.0, 3)).median == 2.0


def test_the_mean_of_ratios_is_geometric_so_that_twice_and_half_are_none() -> None:
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)


def test_without_a_commit_to_compare_with_the_claims_are_open_and_a_note_says_how(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("BEFORE", raising=False)
    result = compare(Options())
    assert [claim.value for claim in result.claims] == [None] * 4
    assert any(HOW in note for note in result.notes)


ANSWERS = """
import json, sys
for line in sys.stdin:
    if json.loads(line)["rate"] == 0:
        raise SystemExit("a rate of 0")
    print("a line of somebody else's")
    print(json.dumps({"file": __file__} | json.loads(line)), flush=True)
"""


def test_a_child_runs_the_code_of_its_folder_and_answers_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(ANSWERS)
    with closing(Child(tmp_path, "answers")) as child:
        for rate in (10, 20):
            assert child.ask({"rate": rate}) == {"file": str(tmp_path / "answers.py"), "rate": rate}
        with pytest.raises(WrongResultError, match="a rate of 0"):
            child.ask({"rate": 0})


@needs_git
def test_a_checkout_has_the_code_of_its_commit_and_our_benchmarks_and_then_is_gone() -> None:
    with checkout("HEAD") as tree:
        assert (tree / "runtime" / "schedule" / "slot.py").exists()
        ours = Path(before.__file__).read_text(encoding="utf-8")
        assert (tree / "benchmarks" / "engine" / "before.py").read_text(encoding="utf-8") == ours
    assert not tree.exists()
