"""Causes of attempts that could not start."""

from __future__ import annotations

import pytest
from ray.exceptions import RayActorError, RayError

from slackwater.actors.jobs.lasting import cause_of_start
from slackwater.actors.jobs.slot_actors import NotInTime
from slackwater.runtime.errors import CheckpointError, ClusterError, SlackwaterError
from slackwater.runtime.recovery.attempts import Again, Attempts


@pytest.mark.parametrize(
    ("problem", "goes_on"),
    [
        (NotInTime("not all of its 3 slots answered 'connect' within 60 s"), True),
        (RayActorError(), True),
        (CheckpointError("a part is missing"), True),
        (ClusterError("the head of the Ray cluster is gone"), False),
    ],
)
def test_slots_that_are_silent_at_a_start_are_a_failed_attempt_like_others(
    problem: SlackwaterError | RayError, goes_on: bool
) -> None:
    attempts = Attempts(0, is_repeatable=False, checkpoints=(3,))
    assert isinstance(attempts.failed(cause_of_start(problem), 0), Again) is goes_on
