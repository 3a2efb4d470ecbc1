"""Words about a process that has died, by what it left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import RayActorError, RayError

import slackwater as sw
from slackwater.actors.jobs import deaths
from slackwater.actors.jobs.deaths import Death, evidence_in, not_users
from slackwater.actors.slot.last_words import read_last_words
from slackwater.runtime.life import HomeNode

ROOT = Path(__file__).resolve().parents[3]
LOG = """:job_id:01000000
*** SIGSEGV received at time=1795665905 on cpu 1 ***
Fatal Python error: Segmentation fault

Stack (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/flows/city.py", line 13 in crash
  File "/usr/lib/python3.11/threading.py", line 982 in run
"""
DIES = """
import os
import signal
import sys
import time
from slackwater.actors.slot.last_words import LastWords
from slackwater.runtime.model.whose_code import RUNNING

LastWords.install()
RUNNING.reset(RUNNING.set("first"))
token = RUNNING.set("bad")
{dies}
time.sleep(30)
"""


def test_a_signal_is_told_with_the_line_of_the_users_code() -> None:
    by = evidence_in(LOG, ["/usr/lib/python3.11"])
    assert by == ("SIGSEGV (Segmentation fault)", ", at /flows/city.py, line 13, in crash")
    assert str(Death(*by, "bad")) == (
        "its process was ended by SIGSEGV (Segmentation fault), at /flows/city.py, line 13, in "
        "crash; the last input, function or output that ran there is that of 'bad'"
    )
    assert evidence_in(":job_id:01000000\n", []) == ("", "")
    assert str(Death("", "", "bad")) == (
        "the last input, function or output that ran there is that of 'bad'"
    )
    assert str(Death("", "", "")) == ""


@pytest.mark.parametrize("path", [ROOT / "examples" / "hello.py", Path("/usr/src/app/flow.py")])
def test_a_line_of_a_flow_beside_our_packages_or_pythons_is_the_users(path: Path) -> None:
    ours = ROOT / "slackwater" / "actors" / "kernel" / "loop.py"
    log = LOG.replace("/usr/lib/python3.11/ctypes/__init__.py", str(ours))
    log = log.replace("/flows/city.py", str(path))
    assert evidence_in(log, not_users())[1] == f", at {path}, line 13, in crash"


@pytest.mark.parametrize(
    ("dies", "words"),
    [
        ("os._exit(3)", "exit code 3 (os._exit), at <string>, line 12, in <module>"),
        ("signal.setitimer(signal.ITIMER_REAL, 0.001)", "signal SIGALRM"),
        ("os.kill(os.getpid(), signal.SIGUSR1)", "signal SIGUSR1"),
        ("os.kill(os.getpid(), signal.SIGKILL)", ""),
        ("os.fork() or os._exit(5); os.wait(); os.kill(os.getpid(), signal.SIGKILL)", ""),
    ],
)
def test_a_process_leaves_the_step_that_ran_and_what_ended_it(
    tmp_path: Path, dies: str, words: str
) -> None:
    log = tmp_path / "worker-1.err"
    with log.open("wb") as errors:
        code = DIES.format(dies=dies)
        ended = subprocess.run(  # noqa: S603 our own program
            [sys.executable, "-c", code], stderr=errors, cwd=ROOT, timeout=30, check=False
        )
    assert ended.returncode != 0
    assert read_last_words(log) == ("bad", words), log.read_text()
    assert log.with_suffix(".last").stat().st_mode & 0o77 == 0


def test_a_process_that_left_nothing_has_no_words(tmp_path: Path) -> None:
    assert read_last_words(tmp_path / "worker-1.err") == ("", "")


def test_a_slot_that_dies_in_the_start_is_named_as_one_that_dies_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = sw.Dataflow("city")
    rows = sw.table({"ts": [1], "n": [1]})
    flow.source("src", rows, event_time="ts", time_unit="s").sink("o", sw.collect_sink())
    plan = sw.Simulation(nodes=1).plan(flow)
    homes = {"node-1": HomeNode("id", "node-1", "127.0.0.1")}
    death = Death("exit code 3 (os._exit)", ", at f.py, line 3, in open", "o")
    monkeypatch.setattr(deaths, "death_of", lambda *_: death)
    died = deaths.death_in_start(RayActorError(), "node-1", plan, homes)
    assert str(died) == (
        "the worker of slot 'node-1' (stages: src, o) died on node node-1 (host 127.0.0.1): its "
        "process was ended by exit code 3 (os._exit), at f.py, line 3, in open; the last input, "
        "function or output that ran there is that of 'o'. The job was stopped; sinks hold whole "
        "batches only. Mend the code that did it, or do without it, and submit the flow again"
    )


@pytest.mark.parametrize(
    "problem", [RayError("late"), RayActorError(error_msg="in its creation task")]
)
def test_a_start_that_fails_otherwise_keeps_rays_words(problem: RayError) -> None:
    plan: Any = None
    assert deaths.death_in_start(problem, "node-1", plan, {}) is None


def test_a_process_that_left_no_trace_was_killed() -> None:
    problem = RayActorError(error_msg="The actor died unexpectedly before finishing this task.\n…")
    assert deaths.words_of(problem, Death("", "", "o")) == (
        "its process was killed (SIGKILL), or ended without a trace; the last input, "
        "function or output that ran there is that of 'o'"
    )
    assert deaths.words_of(problem, None).startswith("The actor died unexpectedly")
    own = Death("exit code 3 (os._exit)", "", "")
    assert deaths.words_of(problem, own) == "its process was ended by exit code 3 (os._exit)"
