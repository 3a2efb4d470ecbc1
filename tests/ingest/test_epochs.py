"""What becomes visible of the rows that Spark's tasks push, and when."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest.push.epochs import Epochs, Finished
from slackwater.runtime.errors import FrameError, IngestError


def rows(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.int64())})


def values(batches: list[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def made() -> Epochs:
    return Epochs(max_bytes=2**20)


def test_rows_become_visible_by_partition_then_sequence_however_they_arrived() -> None:
    epochs = made()
    epochs.add(0, 1, 11, 0, rows(4, 5))
    epochs.add(0, 1, 11, 1, rows(6))
    epochs.add(0, 0, 10, 0, rows(1, 2, 3))
    visible = epochs.commit(0, [Finished(1, 11, 2, 3), Finished(0, 10, 1, 3)])
    assert values(visible) == [1, 2, 3, 4, 5, 6]


def test_what_a_failed_attempt_sent_is_dropped_even_if_its_rows_came_in_another_order() -> None:
    epochs = made()
    epochs.add(0, 0, 10, 0, rows(2, 1))
    epochs.add(0, 0, 12, 0, rows(1, 2))
    epochs.add(0, 0, 12, 1, rows(3))
    assert values(epochs.commit(0, [Finished(0, 12, 2, 3)])) == [1, 2, 3]
    assert epochs.bytes_held == 0


def test_an_epoch_that_runs_again_is_visible_once() -> None:
    epochs = made()
    epochs.add(4, 0, 10, 0, rows(1))
    assert values(epochs.commit(4, [Finished(0, 10, 1, 1)])) == [1]
    epochs.add(4, 0, 20, 0, rows(1))
    assert epochs.commit(4, [Finished(0, 20, 1, 1)]) == []
    assert (epochs.repeated, epochs.bytes_held) == (1, 0)


def test_after_what_was_spooled_the_next_epoch_must_follow() -> None:
    epochs = Epochs(max_bytes=2**20, after=4)
    assert epochs.commit(4, []) == []
    with pytest.raises(IngestError, match=r"micro-batch 6 came where 5 was due: Spark counts"):
        epochs.commit(6, [])
    assert epochs.commit(5, []) == []
    assert epochs.commit(6, []) == []


def test_an_epoch_without_rows_or_tasks_commits() -> None:
    epochs = made()
    assert epochs.commit(0, [Finished(0, 1, 0, 0)]) == []
    assert epochs.commit(1, []) == []
    assert epochs.last_committed == 1


def test_rows_of_the_next_epoch_stay_when_one_is_committed() -> None:
    epochs = made()
    epochs.add(0, 0, 10, 0, rows(1))
    epochs.add(1, 0, 11, 0, rows(2))
    assert values(epochs.commit(0, [Finished(0, 10, 1, 1)])) == [1]
    assert epochs.bytes_held == 8
    assert values(epochs.commit(1, [Finished(0, 11, 1, 1)])) == [2]


@pytest.mark.parametrize(
    "said", [Finished(0, 10, 2, 2), Finished(0, 10, 1, 2), Finished(1, 10, 1, 1)]
)
def test_rows_that_a_task_sent_and_that_are_not_here_are_never_passed_over(said: Finished) -> None:
    epochs = made()
    epochs.add(0, 0, 10, 0, rows(1))
    with pytest.raises(IngestError, match="micro-batch 0, partition"):
        epochs.commit(0, [said])


def test_a_micro_batch_that_is_too_large_is_refused_with_the_way_out() -> None:
    epochs = Epochs(max_bytes=20)
    epochs.add(0, 0, 10, 0, rows(1, 2))
    with pytest.raises(IngestError, match="maxFilesPerTrigger"):
        epochs.add(0, 1, 11, 0, rows(3))


@pytest.mark.parametrize("sequence", [0, 2])
def test_a_frame_that_comes_twice_or_out_of_turn_is_refused_by_its_number(sequence: int) -> None:
    epochs = made()
    epochs.add(3, 1, 10, 0, rows(1))
    with pytest.raises(FrameError, match=rf"attempt 10: frame {sequence} came where frame 1"):
        epochs.add(3, 1, 10, sequence, rows(2))
    epochs.add(3, 1, 10, 1, rows(3))
    assert values(epochs.commit(3, [Finished(1, 10, 2, 2)])) == [1, 3]


def test_a_manifest_that_counts_a_partition_twice_shows_nothing() -> None:
    epochs = made()
    epochs.add(0, 0, 10, 0, rows(1))
    with pytest.raises(FrameError, match="names a partition twice"):
        epochs.commit(0, [Finished(0, 10, 1, 1), Finished(0, 10, 1, 1)])
    assert values(epochs.commit(0, [Finished(0, 10, 1, 1)])) == [1]


@dataclass(frozen=True)
class Attempt:
    """A task attempt: it succeeds when it sent everything and says so."""

    partition: int
    number: int
    sent: int


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[int]], list[Attempt], list[tuple[int, int]]]:
    """Draw partitions' frames, attempts (the last of each partition succeeds), arrivals."""
    frames = draw(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4))
    attempts: list[Attempt] = []
    for partition, own in enumerate(frames):
        for _ in range(draw(st.integers(0, 2))):
            sent = draw(st.integers(0, len(own)))
            attempts.append(Attempt(partition, 10 * partition + len(attempts), sent))
        attempts.append(Attempt(partition, 10 * partition + len(attempts), len(own)))
    # One connection keeps an attempt's frames in turn; those of several come in between.
    turns = [which for which, attempt in enumerate(attempts) for _ in range(attempt.sent)]
    sent = [0] * len(attempts)
    arrivals = []
    for which in draw(st.permutations(turns)):
        arrivals.append((which, sent[which]))
        sent[which] += 1
    return frames, attempts, arrivals


@given(histories())
def test_any_arrival_of_any_attempts_shows_each_row_once(
    history: tuple[list[list[int]], list[Attempt], list[tuple[int, int]]],
) -> None:
    frames, attempts, arrivals = history
    epochs = made()
    for which, sequence in arrivals:
        attempt = attempts[which]
        batch = rows(frames[attempt.partition][sequence])
        epochs.add(7, attempt.partition, attempt.number, sequence, batch)
    last = {attempt.partition: attempt for attempt in attempts}
    manifest = [Finished(a.partition, a.number, a.sent, a.sent) for a in last.values()]
    visible = values(epochs.commit(7, manifest[::-1]))
    assert visible == [value for own in frames for value in own]
    assert epochs.bytes_held == 0
    assert epochs.repeated == 0
