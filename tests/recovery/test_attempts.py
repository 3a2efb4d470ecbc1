"""Attempts at a job: causes of failures go in, the next attempt or the job's end comes out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slackwater.runtime.life import Cause
from slackwater.runtime.recovery.attempts import LONGEST_NS, MOST_ALIKE, PASSED, Again, Attempts

S = 1_000_000_000


def death(slot: str = "a", text: str = "its process 17 was killed") -> Cause:
    return Cause("WorkerDied", text, (slot,))


def of(*checkpoints: int, is_repeatable: bool = True) -> Attempts:
    return Attempts(0, is_repeatable=is_repeatable, checkpoints=checkpoints)


def failures(attempts: Attempts, *causes: Cause) -> list[Again | Cause]:
    return [attempts.failed(cause, 0) for cause in causes]


def test_an_attempt_begins_at_the_last_complete_checkpoint_or_at_the_start() -> None:
    attempts = of()
    assert failures(attempts, death()) == [Again(None, 0)]
    attempts.complete(4)
    attempts.complete(7)
    assert failures(attempts, death()) == [Again(7, 0)]


def test_the_wait_doubles_to_its_limit_and_a_complete_checkpoint_resets_it() -> None:
    attempts = of(1)
    waits = [
        again.after_ns
        for n in range(9)
        if isinstance(again := attempts.failed(death(f"{n}"), 0), Again)
    ]
    assert waits == [0, S, 2 * S, 4 * S, 8 * S, 16 * S, LONGEST_NS, LONGEST_NS, LONGEST_NS]
    attempts.complete(2)
    assert failures(attempts, death("8")) == [Again(2, 0)]


@pytest.mark.parametrize("checkpoints", [(), (3,)])
def test_a_third_failure_alike_ends_the_job_whatever_numbers_its_text_has(
    checkpoints: tuple[int, ...],
) -> None:
    attempts = of(*checkpoints, is_repeatable=False)
    *again, end = failures(
        attempts, *[death(text=f"process {n} died at 0x{n}f") for n in (1, 22, 3)]
    )
    assert all(isinstance(answer, Again) for answer in again)
    assert isinstance(end, Cause)
    assert end.message.startswith("process 3 died at 0x3f (the job did not recover: 3 times")


def test_a_recovery_says_what_happened_and_the_error_what_to_do() -> None:
    attempts = of(3, is_repeatable=False)
    cause = replace(death(), way_out="Mend that, and submit the flow again")
    *_, end = failures(attempts, *[cause] * MOST_ALIKE)
    assert [own.cause for own in attempts.recoveries] == [
        "WorkerDied: its process 17 was killed"
    ] * (MOST_ALIKE - 1)
    assert isinstance(end, Cause)
    assert str(end.error()) == (
        "its process 17 was killed (the job did not recover: 3 times, last from checkpoint 3). "
        "Mend that, and submit the flow again"
    )


def test_other_slots_other_texts_and_other_kinds_are_other_causes() -> None:
    attempts = of(3, is_repeatable=False)
    other = Cause("SinkError", "its process 17 was killed", ("a",))
    alike = [death("a"), death("b"), death("a", "it was full"), other]
    assert all(isinstance(answer, Again) for answer in failures(attempts, *alike, *alike))


def test_the_checkpoint_before_is_tried_once_where_the_same_rows_come_again() -> None:
    attempts = of(3, 5)
    answers = failures(attempts, *[death()] * (MOST_ALIKE + 1))
    assert [a.checkpoint for a in answers if isinstance(a, Again)] == [5, 5, 3]
    assert isinstance(answers[-1], Cause)
    assert "the checkpoint before gave the same" in answers[-1].message


def test_a_row_that_always_fails_ends_the_job_though_checkpoints_are_taken_before_it() -> None:
    attempts = of(3, 5)
    failures(attempts, *[death()] * MOST_ALIKE)
    attempts.complete(6)
    *again, end = failures(attempts, *[death()] * MOST_ALIKE)
    assert again == [Again(6, 0), Again(6, S)]
    assert isinstance(end, Cause)
    assert "the checkpoint before gave the same, last from checkpoint 6" in end.message


def test_a_job_goes_on_from_the_checkpoint_before_if_that_one_does() -> None:
    attempts = of(3, 5)
    failures(attempts, *[death()] * MOST_ALIKE)
    for number in range(6, 6 + PASSED):
        attempts.complete(number)
    answers = failures(attempts, *[death()] * MOST_ALIKE)
    newest = 5 + PASSED
    assert [a.checkpoint for a in answers if isinstance(a, Again)] == [newest, newest, newest - 1]


def test_the_start_is_not_tried_once_there_is_a_checkpoint() -> None:
    attempts = of()
    attempts.complete(1)
    *again, end = failures(attempts, *[death()] * MOST_ALIKE)
    assert again == [Again(1, 0), Again(1, S)]
    assert isinstance(end, Cause)
    assert "3 times, last from checkpoint 1" in end.message


def test_rows_beside_an_error_do_not_make_it_another() -> None:
    attempts = of(3, is_repeatable=False)
    texts = [f"step 'a' raised{rows}" for rows in ("", "\nits row: x", "\nfirst of its rows: y")]
    assert isinstance(failures(attempts, *[death(text=text) for text in texts])[-1], Cause)


@pytest.mark.parametrize(
    "kind",
    [
        *("SettingError", "ColumnError", "ClusterError", "RetentionError", "InputGone"),
        "OutputRefused",
    ],
)
def test_a_failure_that_no_repeat_mends_ends_the_job_at_once(kind: str) -> None:
    cause = Cause(kind, "so it is", ("a",))
    assert failures(of(3), cause) == [cause]


def test_no_attempt_follows_a_stop_by_the_user() -> None:
    attempts = of(3)
    attempts.stop()
    assert failures(attempts, death()) == [death()]
    assert attempts.recoveries == []


def test_each_recovery_is_reported_with_its_cause_and_how_long_slots_stood_still() -> None:
    attempts = Attempts(5 * S, is_repeatable=True)
    attempts.failed(death(), 7 * S)
    (recovery,) = attempts.recoveries
    assert recovery.text == (
        "at 2.0 s all slots went back to the start: WorkerDied: its process 17 was killed"
    )
    attempts.works(10 * S)
    assert (recovery.at_s, recovery.checkpoint, recovery.gap_s) == (2.0, None, 3.0)
    assert "worked again after 3.00 s" in recovery.text


def test_a_recovery_names_nodes_that_were_lost_and_room_that_it_waits_for() -> None:
    attempts = of(3)
    attempts.failed(death(), 7 * S)
    attempts.lost({"host-3", "host-2"})
    attempts.waits("2 slots of lost nodes wait for a node with a free CPU")
    (recovery,) = attempts.recoveries
    assert recovery.text == (
        "at 7.0 s all slots went back to checkpoint 3, without host-2 and host-3: WorkerDied: its "
        "process 17 was killed; 2 slots of lost nodes wait for a node with a free CPU"
    )
    attempts.waits(None)
    assert recovery.text.endswith("was killed")
