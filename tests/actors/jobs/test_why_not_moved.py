"""Reasons for which no stage of a running job was moved."""

from __future__ import annotations

from slackwater.actors.jobs.replacing import why_not
from slackwater.runtime.errors import WorkerDied

KILLED = WorkerDied("a worker failed to start: The actor died.\n\tclass_name: SlotActor\n\tpid: 7")


def test_a_job_that_ended_meanwhile_is_told_as_that() -> None:
    said = why_not(KILLED, "counts", has_ended=True)
    assert said == "job 'counts' ended meanwhile; submit the flow again with this placement"


def test_another_reason_is_told_in_one_line() -> None:
    said = why_not(KILLED, "counts", has_ended=False)
    assert said == "a worker failed to start: The actor died."
