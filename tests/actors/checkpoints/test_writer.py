"""The writing thread: entries and errors come back, and at most one part waits."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import pytest

from slackwater.actors.checkpoints.part_files import read_part
from slackwater.actors.checkpoints.writer import CheckpointWriter, PartWritten
from slackwater.runtime.errors import CheckpointError
from tests.support.checkpoints import part_of
from tests.support.plain_values import are_same

LONG_S = 30.0


def test_a_part_is_written_in_another_thread(tmp_path: Path) -> None:
    outcomes: queue.Queue[tuple[PartWritten, int]] = queue.Queue()
    writer = CheckpointWriter(
        tmp_path, lambda written: outcomes.put((written, threading.get_ident()))
    )
    writer.write(part_of(number=7))
    written, thread = outcomes.get(timeout=LONG_S)
    assert thread != threading.get_ident()
    assert (written.number, written.problem) == (7, None)
    assert written.entry is not None
    assert written.cpu_ns > 0
    assert written.elapsed_ns > 0
    assert are_same(read_part(tmp_path, written.entry).state, part_of(number=7).state)
    assert writer.close(within_s=LONG_S)


def test_errors_come_back_and_the_next_part_is_written(tmp_path: Path) -> None:
    outcomes: queue.Queue[PartWritten] = queue.Queue()
    folder = tmp_path / "gone"
    writer = CheckpointWriter(folder, outcomes.put)
    writer.write(part_of(number=1))
    first = outcomes.get(timeout=LONG_S)
    assert isinstance(first.problem, CheckpointError)
    assert first.entry is None
    writer.write(part_of(number=2)._replace(results={"own": object()}))
    assert isinstance(outcomes.get(timeout=LONG_S).problem, TypeError)
    folder.mkdir()
    writer.write(part_of(number=3))
    assert outcomes.get(timeout=LONG_S).entry is not None
    assert writer.close(within_s=LONG_S)


def test_a_part_that_waits_is_given_up_for_a_newer_one(tmp_path: Path) -> None:
    outcomes: list[PartWritten] = []
    begun, may_go_on = threading.Event(), threading.Event()

    def done(written: PartWritten) -> None:
        outcomes.append(written)
        if written.number == 1:
            begun.set()
            assert may_go_on.wait(LONG_S)

    writer = CheckpointWriter(tmp_path, done)
    writer.write(part_of(number=1))
    assert begun.wait(LONG_S)
    for number in (2, 3, 4):
        writer.write(part_of(number=number))
    assert [written.number for written in outcomes] == [1, 2, 3]
    assert "given up: checkpoint 4 came before it was written" in str(outcomes[-1].problem)
    may_go_on.set()
    assert writer.close(within_s=LONG_S)
    last = outcomes[-1]
    assert last.number == 4
    assert (last.entry is None) == (last.problem is not None)  # written, or given up by the end


def test_a_closed_writer_gives_up_what_waits(tmp_path: Path) -> None:
    outcomes: list[PartWritten] = []
    writer = CheckpointWriter(tmp_path, outcomes.append)
    assert writer.close(within_s=LONG_S)
    with pytest.raises(CheckpointError, match="closed"):
        writer.write(part_of())
    assert outcomes == []
