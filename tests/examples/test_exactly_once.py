"""The example of an output that has each row once, killed after any step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from examples import exactly_once
from slackwater.runtime.errors import SinkError
from slackwater.runtime.plan.after_failure import guarantees
from tests.support.flows import simulated
from tests.support.sinks import RUN, Checkpoint, Driven

N = 24
SCHEMA = pa.schema([("n", pa.int64()), ("attempt", pa.int64())])


def rows(first: int, count: int, attempt: int) -> pa.RecordBatch:
    return pa.record_batch([range(first, first + count), [attempt] * count], schema=SCHEMA)


class Killed(Exception):
    """The process of the sink is gone."""


class Attempt:
    """An attempt of a job from its last complete checkpoint; killed after some steps.

    Where a flow has slack, each attempt has other rows, which `attempt` in them says.
    """

    def __init__(self, path: Path, known: Checkpoint | None, kept: int, *, holds: bool) -> None:
        self.sink = Driven(
            exactly_once.ExactlyOnce(str(path), "out"),
            SCHEMA,
            run=RUN,
            checkpoint=known,
            holds=holds,
            keeps_positions=True,
        )
        self.known, self.kept, self.steps = known or Checkpoint(), kept, 0

    def run(self, attempt: int, kill_after: int) -> None:
        """Write from the checkpoint on, with a checkpoint after every second batch."""
        self.step(kill_after, self.sink.begin)
        number = self.known.number
        for place, first in enumerate(range(self.kept, N, 3)):
            self.step(kill_after, self.sink.write, rows(first, 3, attempt))
            if place % 2:
                number += 1
                made = self.sink.checkpoint(number)
                self.step(kill_after, lambda: None)  # begun, and never complete
                self.known, self.kept = made, first + 3
                self.step(kill_after, self.sink.complete, number)
        made = self.sink.checkpoint(number + 1)
        self.known, self.kept = made, N
        self.sink.complete(number + 1)
        self.sink.close("stopped")

    def step(self, kill_after: int, happen: Any, *given: Any) -> None:
        happen(*given)
        self.steps += 1
        if self.steps == kill_after:
            self.sink.sink._sink._database.close()  # as the kernel does: it rolls back
            raise Killed


@pytest.mark.parametrize("holds", [False, True], ids=["at once", "held"])
def test_each_row_is_there_once_wherever_the_writer_was_killed(tmp_path: Path, holds: bool) -> None:
    kills = 0
    for kill_after in range(1, 40):
        path = tmp_path / f"{kill_after}.db"
        attempt = Attempt(path, Checkpoint(), 0, holds=holds)
        decided: list[tuple[int, int]] = []  # rows of complete checkpoints, and who decided them
        for number, most in ((1, kill_after), (2, 7), (3, 10**6)):
            by = number if holds else 0
            try:
                attempt.run(by, most)
            except Killed:
                kills += 1
            decided += [(n, by) for n in range(len(decided), attempt.kept)]
            attempt = Attempt(path, attempt.known, attempt.kept, holds=holds)
        attempt.sink.begin()
        assert exactly_once.rows_of(str(path), "out") == decided, f"killed after {kill_after}"
        assert [n for n, _ in decided] == list(range(N))
    assert kills > 20


def test_the_writer_of_an_attempt_that_was_given_up_commits_nothing(tmp_path: Path) -> None:
    output = exactly_once.ExactlyOnce(str(tmp_path / "out.db"), "out")
    before = Driven(output, SCHEMA, run=RUN, keeps_positions=True)
    before.write(rows(0, 3, 1))
    checkpoint = before.checkpoint()
    sink = Driven(output, SCHEMA, run=RUN, checkpoint=checkpoint)
    sink.write(rows(3, 3, 2))
    sink.checkpoint(2)
    before.write(rows(3, 3, 1))
    with pytest.raises(SinkError, match="another process has written"):
        before.checkpoint(2)
    assert len(exactly_once.rows_of(str(tmp_path / "out.db"), "out")) == 6


def test_rows_of_an_earlier_run_are_refused_where_no_later_run_can_go_on(tmp_path: Path) -> None:
    path = str(tmp_path / "buses.db")
    output = exactly_once.ExactlyOnce(path, "counts")
    simulated(exactly_once.held(output))
    written = exactly_once.rows_of(path, "counts")
    with pytest.raises(SinkError, match=r"the rows of an earlier run, .*has a slack"):
        simulated(exactly_once.held(output))
    assert exactly_once.rows_of(path, "counts") == written


def test_the_example_shows_what_it_says() -> None:
    said: list[str] = []
    exactly_once.main(said.append)
    killed, again, at_once, held = said
    assert (killed, again) == ("killed: 9 rows", "again: 15 rows")
    assert at_once.startswith("slow (sink): exactly once: the same rows come again")
    assert held.startswith("counts (sink): exactly once, held: rows are written once")
    counts = exactly_once.ExactlyOnce("b.db", "counts")
    assert [known.word for known in guarantees(exactly_once.held(counts).steps)] == [
        "exactly once",
        "exactly once",
    ]
