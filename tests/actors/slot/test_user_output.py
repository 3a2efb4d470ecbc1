"""What users' functions print: with the step's name, bounded, and what is cut is said."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import threading

import pytest

import slackwater as sw
from slackwater.actors.jobs.user_output_relay import UserOutputRelay
from slackwater.actors.slot import user_output
from slackwater.actors.slot.user_output import (
    MOST_CHARS,
    MOST_HELD,
    MOST_LINES,
    OutputLine,
    UserOutput,
)
from slackwater.runtime.model.whose_code import RUNNING


class Told:
    """An output with a clock that is set, and the log that it writes."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.logged: list[OutputLine] = []
        self.output = UserOutput(
            lambda is_error, text: self.logged.append(OutputLine(is_error, text)),
            clock_s=lambda: self.now_s,
        )

    def say(self, text: str, step: str = "clean") -> None:
        self.output.write(step, text, is_error=False)

    def texts(self, *, is_last: bool = False) -> list[str]:
        return [line.text for line in self.output.take(is_last=is_last)]


def test_lines_carry_the_name_of_their_step_and_half_lines_wait() -> None:
    told = Told()
    told.say("one\ntwo")
    told.say("other\n", step="sort")
    assert told.texts() == ["[clean] one", "[sort] other"]
    told.say(" and a half\n")
    assert told.texts() == ["[clean] two and a half"]
    told.say("the last")
    assert told.texts() == []
    assert told.texts(is_last=True) == ["[clean] the last"]


def test_lines_beyond_the_bound_of_a_second_are_counted_and_said() -> None:
    told = Told()
    told.say("x\n" * (MOST_LINES + 7))
    told.say("y\n", step="sort")
    assert told.texts() == ["[clean] x"] * MOST_LINES
    told.now_s = 1.2
    told.say("again\n")
    cut = [f"{n} more lines of one second are not here; at most {MOST_LINES} are" for n in (7, 1)]
    assert told.texts() == [f"[clean] … {cut[0]}", f"[sort] … {cut[1]}", "[clean] again"]
    assert len(told.logged) == MOST_LINES + 9, "the worker's log has them all"


def test_a_log_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_output, "MOST_LOGGED", 200)
    told = Told()
    told.say("x\n" * 203)
    told.texts(is_last=True)
    assert len(told.logged) == 201
    assert told.logged[-1].text == (
        "[clean] … 3 more lines of one second are not here; at most 200 are"
    )


def test_the_last_lines_that_were_cut_are_said_at_the_end() -> None:
    told = Told()
    told.say("x\n" * (MOST_LINES + 1))
    assert told.texts(is_last=True)[-1].startswith("[clean] … 1 more lines")


def test_a_line_without_end_is_cut() -> None:
    told = Told()
    for _ in range(10):
        told.say("z" * MOST_CHARS)
    assert max(map(len, told.texts(is_last=True))) < MOST_CHARS + 60


def test_lines_that_nobody_takes_are_not_kept_for_ever() -> None:
    told = Told()
    for second in range(MOST_HELD // MOST_LINES + 2):
        told.now_s = second
        told.say("x\n" * MOST_LINES)
    texts = told.texts()
    assert len(texts) == MOST_HELD + 1
    assert texts[0] == "[slackwater] 200 lines before this were not shown in time"


def test_lines_of_a_sink_have_no_bound_of_a_second_and_are_marked() -> None:
    told = Told()
    for number in range(MOST_LINES + 7):
        told.output.show(f"[out] {number}")
    told.say("x\n")
    lines = told.output.take()
    assert [line.text for line in lines[:-1]] == [f"[out] {n}" for n in range(MOST_LINES + 7)]
    assert [line.is_result for line in lines] == [True] * (MOST_LINES + 7) + [False]
    assert len(told.logged) == len(lines)


def test_who_waits_for_lines_has_them_when_they_come_and_hears_of_the_end() -> None:
    told = Told()
    printing = threading.Timer(0.05, told.say, args=["one\n"])
    printing.start()
    told.output.wait(30)
    assert told.texts() == ["[clean] one"]
    printing.join()
    told.say("half")
    ending = threading.Timer(0.05, told.output.take, kwargs={"is_last": True})
    ending.start()
    told.output.wait(30)
    ending.join()
    told.output.wait(0.001)  # and again, in a slot that is given stages after its end


def test_what_was_cut_is_said_by_when_its_second_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_output, "CUT_S", 0.05)
    told = Told()
    told.say("x\n" * (MOST_LINES + 1))
    assert len(told.texts()) == MOST_LINES
    told.output.wait(30)
    told.now_s = 1.0
    assert told.texts()[0].startswith("[clean] … 1 more lines")


def test_only_what_a_steps_code_prints_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    output = UserOutput.install()
    print("of ours")  # noqa: T201 - what the test is about
    token = RUNNING.set("clean")
    try:
        print("seen", 1)  # noqa: T201
        logging.Logger("mine").warning("odd")
        other = threading.Thread(target=lambda: print("a thread of its own"))  # noqa: T201
        other.start()
        other.join()
    finally:
        RUNNING.reset(token)
    assert output.take() == [OutputLine(False, "[clean] seen 1"), OutputLine(True, "[clean] odd")]
    assert streams[0].getvalue() == "of ours\n[clean] seen 1\na thread of its own\n"
    assert streams[1].getvalue() == "[clean] odd\n"


def test_a_logger_with_a_handler_of_its_own_is_heard_too(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    mine, handler = logging.getLogger("slackwater.tests.mine"), logging.StreamHandler()
    mine.addHandler(handler)  # as a module of the user's does, which is imported before us
    monkeypatch.setattr(mine, "propagate", False)
    try:
        output = UserOutput.install()
        token = RUNNING.set("clean")
        try:
            mine.warning("odd")
        finally:
            RUNNING.reset(token)
    finally:
        mine.removeHandler(handler)
    assert output.take() == [OutputLine(True, "[clean] odd")]
    assert streams[1].getvalue() == "[clean] odd\n"


def test_a_terminal_that_is_gone_ends_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = sw.Dataflow("f")
    flow.source("s", sw.table({"t": [10**9]}), event_time="t", time_unit="s").sink(
        "out", sw.collect_sink()
    )
    reading, writing = os.pipe()
    os.close(reading)
    with sw.Simulation(1) as place, monkeypatch.context() as patched:
        gone = io.TextIOWrapper(io.FileIO(writing, "w"))  # not buffered: a write fails at once
        patched.setattr(sys, "stderr", gone)
        with pytest.raises(BrokenPipeError):
            os.write(writing, b"x")
        UserOutputRelay(place.plan(flow), {}).show([OutputLine(False, "[s] hello")])
    with contextlib.suppress(BrokenPipeError):
        gone.close()
