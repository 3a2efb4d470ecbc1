"""A job's life: what is heard goes in, what is to be done comes out. No host, no clock, no Ray."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.life import (
    AskForDead,
    Cause,
    CheckCluster,
    ClusterGone,
    ClusterThere,
    CollectFinalReports,
    DeadNodes,
    End,
    FetchResults,
    FinalReportsCollected,
    HostSilent,
    ResultsFetched,
    SlotDied,
    SlotEnded,
    Stimulus,
    StopRequested,
    StopSlots,
    TimeLimits,
    TimePassed,
)
from slackwater.runtime.life.machine import RECENT
from tests.support.lives import NODE_IDS, SLOTS, TIME_LIMITS, S, Told, done, misses, own, stopped

STANDS_STILL = DeadNodes({}, {"node-2": "its process 7 is stopped"}, ("node-2",))


@pytest.fixture
def told() -> Told:
    return Told()


def test_slots_that_are_all_done_are_asked_for_their_results_and_end(told: Told) -> None:
    assert told.hears(done("node-1"), done("node-2")) == []
    assert told.life.status == "running"
    assert told.hears(done("node-3")) == [FetchResults(("out",))]
    assert told.life.status == "running"  # whoever sees another word finds the results
    assert told.hears(ResultsFetched()) == [End("done", None)]
    assert told.life.status == "done"


def test_an_error_of_a_slots_own_stops_the_others_at_once_and_is_the_cause(told: Told) -> None:
    assert told.hears(own("node-2")) == [CheckCluster()]
    (stop,) = told.hears(ClusterThere())
    assert stop == StopSlots(("node-1", "node-3"), "step 'halve': it raised")
    end = told.ends(stopped("node-1"), stopped("node-3"))
    assert end == End("failed", Cause("OperatorError", "step 'halve': it raised", ("node-2",)))


def test_who_misses_a_peer_is_not_the_cause_if_one_that_raised_is_heard_in_time(told: Told) -> None:
    assert told.hears(misses("node-1", "numbers→gate")) == []
    assert told.life.due_ns == round(TIME_LIMITS.settle_s * S)
    told.hears(own("node-2"), ClusterThere(), after_s=TIME_LIMITS.settle_s - 0.1)
    assert told.said() == "step 'halve': it raised"


def test_of_a_death_and_an_error_that_are_heard_together_the_error_is_the_cause(told: Told) -> None:
    told.hears(SlotDied("node-1", "killed"), own("node-2"), ClusterThere())
    assert told.said() == "step 'halve': it raised"


def test_a_worker_that_died_is_named_with_what_is_known_of_its_node(told: Told) -> None:
    assert told.hears(SlotDied("node-2", "killed")) == [CheckCluster()]
    assert told.hears(ClusterThere()) == [AskForDead(NODE_IDS, TIME_LIMITS.dead_s)]
    (stop,) = told.hears(DeadNodes({"id-3": "its node is gone (Ray lost it)"}))
    assert isinstance(stop, StopSlots)
    assert stop.slots == ("node-1",)
    assert told.fact() == stop.failure
    for slot, stages, reason in (
        ("node-2", "gate", "killed"),
        ("node-3", "out", "its node is gone (Ray lost it)"),
    ):
        assert (
            f"the worker of slot {slot!r} (stages: {stages}) died on node {slot} "
            f"(host 10.0.0.{slot[-1]}): {reason}"
        ) in told.said()
    assert "Bring node-3 back, or do without" in told.said()
    assert told.ends(stopped("node-1")).status == "failed"


@pytest.mark.parametrize("answers", [True, False])
def test_the_one_that_all_others_miss_and_that_says_nothing_is_named(
    told: Told, answers: bool
) -> None:
    told.hears(misses("node-1", "numbers→gate"), misses("node-3", "gate→out"))
    assert told.hears(TimePassed(), after_s=TIME_LIMITS.settle_s) == [CheckCluster()]
    if answers:
        told.hears(ClusterThere(), DeadNodes())
    else:
        told.hears(TimePassed(), after_s=TIME_LIMITS.check_s)
        told.hears(TimePassed(), after_s=TIME_LIMITS.dead_s)
    assert "the worker of slot 'node-2' (stages: gate) died on node node-2" in told.said()
    assert "slot 'node-1' on host 10.0.0.1 hears nothing from it any more" in told.said()
    assert told.hears(ResultsFetched()) == [End("failed", told.life.cause)]


def test_two_that_miss_each_other_are_both_named_with_the_limit(told: Told) -> None:
    told.hears(misses("node-1", "numbers→gate"), misses("node-2", "numbers→gate"), done("node-3"))
    told.hears(ClusterThere(), DeadNodes())
    assert told.said().startswith(
        "slot 'node-1' (stages: numbers) on node node-1 (host 10.0.0.1) heard nothing from slot "
        "'node-2' (stages: gate) on node node-2 (host 10.0.0.2) for 30.0 s (channel "
        "'numbers→gate'), and that one is there: its process stood still"
    )
    assert "Limits(lost_ns=…)" in told.said()


def test_a_silent_worker_whose_process_is_there_is_not_called_dead(told: Told) -> None:
    told.hears(misses("node-1", "numbers→gate"), misses("node-3", "gate→out"))
    told.hears(TimePassed(), after_s=TIME_LIMITS.settle_s)
    (ask,) = told.hears(ClusterThere())
    assert ask == AskForDead(NODE_IDS, TIME_LIMITS.dead_s, ("node-2",))
    told.hears(STANDS_STILL)
    assert told.said().startswith(
        "the worker of slot 'node-2' (stages: gate) on node node-2 (host 10.0.0.2) gave no sign of "
        "life for 30.0 s: slot 'node-1' on host 10.0.0.1 hears nothing from it any more (channel "
        "'numbers→gate'); its process 7 is stopped. The job was stopped"
    )
    assert "died" not in told.said()
    assert told.hears(ResultsFetched()) == [End("failed", told.life.cause)]  # waits for none


def test_beside_a_slot_that_stands_still_only_the_others_are_waited_for(told: Told) -> None:
    told.hears(misses("node-1", "numbers→gate"))
    told.hears(TimePassed(), ClusterThere(), after_s=TIME_LIMITS.settle_s)
    (stop,) = told.hears(STANDS_STILL)
    assert stop == StopSlots(("node-2", "node-3"), told.fact())
    assert told.ends(stopped("node-3")).status == "failed"


def test_a_silent_worker_that_runs_again_is_waited_for_as_it_can_still_report(told: Told) -> None:
    told.hears(misses("node-1", "numbers→gate"), misses("node-3", "gate→out"))
    told.hears(TimePassed(), ClusterThere(), after_s=TIME_LIMITS.settle_s)
    told.hears(DeadNodes({}, {"node-2": "its process 7 runs now"}))
    assert told.ends(stopped("node-2")).status == "failed"


def test_a_silent_host_is_named_and_asked_for_nothing(told: Told) -> None:
    told.hears(done("node-3"))
    told.hears(HostSilent("id-2", "its host 10.0.0.2 does not answer (silence)"))
    _, stop = told.hears(ClusterThere(), DeadNodes())
    assert stop == StopSlots(("node-1",), told.fact())
    assert "Bring node-2 back, or do without" in told.said()
    told.hears(HostSilent("id-3", "its host 10.0.0.3 does not answer (silence)"))
    assert told.hears(stopped("node-1")) == [FetchResults(())]  # it ended there, in vain


def test_a_cluster_that_goes_is_the_cause_of_the_deaths_it_brings(told: Told) -> None:
    assert told.hears(SlotDied("node-1", "its raylet is gone")) == [CheckCluster()]
    (hear,) = told.hears(ClusterGone("the head of the Ray cluster is gone"))
    assert hear == CollectFinalReports(("node-2", "node-3"), told.said(), TIME_LIMITS.cut_off_s)
    assert told.said().startswith("job 'chain' has failed: the head of the Ray cluster is gone. ")
    (end,) = told.hears(stopped("node-2"), FinalReportsCollected())
    assert end == End("failed", Cause("ClusterError", told.said()))


def test_a_cluster_that_goes_behind_an_error_of_a_slots_own_does_not_hide_it(told: Told) -> None:
    told.hears(own("node-1"))
    (hear,) = told.hears(ClusterGone("the head is gone"))
    assert isinstance(hear, CollectFinalReports)
    assert hear.failure == told.said() == "step 'halve': it raised"


def test_a_cluster_that_goes_while_results_are_fetched_fails_a_job_that_was_done(
    told: Told,
) -> None:
    told.hears(*map(done, SLOTS))
    (hear,) = told.hears(ClusterGone("the head is gone"))
    assert hear == CollectFinalReports((), told.said(), TIME_LIMITS.cut_off_s)
    (end,) = told.hears(TimePassed(), after_s=TIME_LIMITS.cut_off_s)
    assert isinstance(end, End)
    assert end.status == "failed"


def test_a_stop_that_is_asked_for_stops_all_and_is_no_failure(told: Told) -> None:
    told.hears(done("node-1"))
    assert told.hears(StopRequested()) == [CheckCluster()]
    assert told.hears(ClusterThere()) == [StopSlots(("node-2", "node-3"), None)]
    assert told.hears(StopRequested()) == []
    assert told.ends(stopped("node-2"), stopped("node-3")) == End("stopped", None)


def test_a_slot_that_hangs_is_waited_for_no_longer_than_told_and_fails_nothing(told: Told) -> None:
    told.hears(StopRequested(), ClusterThere(), stopped("node-1"), stopped("node-2"))
    assert told.hears(TimePassed(), after_s=TIME_LIMITS.stop_s - 0.001) == []
    assert told.hears(TimePassed(), after_s=0.001) == [FetchResults(())]  # not from the one
    assert told.hears(ResultsFetched()) == [End("stopped", None)]


@pytest.mark.parametrize("asked_first", [True, False])
def test_a_sink_that_cannot_be_finished_or_a_death_fails_also_a_job_that_was_to_stop(
    told: Told, asked_first: bool
) -> None:
    told.hears(StopRequested(), ClusterThere())
    told.hears(stopped("node-1"), stopped("node-2"))
    full = SlotEnded("node-3", "failed", "sink 'out': the disk is full", "SinkError")
    end = told.ends(full if asked_first else SlotDied("node-3", "killed"))
    assert end.status == "failed"
    assert ("disk is full" if asked_first else "slot 'node-3' (stages: out) died") in told.said()


def test_a_stop_that_is_asked_for_behind_a_failure_changes_nothing(told: Told) -> None:
    told.hears(own("node-2"), StopRequested())
    (stop,) = told.hears(ClusterThere())
    assert stop == StopSlots(("node-1", "node-3"), "step 'halve': it raised")


def test_of_each_slot_the_first_end_counts(told: Told) -> None:
    told.hears(done("node-1"), SlotDied("node-1", "its actor was let go"))
    told.hears(done("node-2"), own("node-2"))
    assert told.ends(done("node-3")) == End("done", None)


def test_nothing_is_done_behind_the_end(told: Told) -> None:
    told.ends(*map(done, SLOTS))
    late: Sequence[Stimulus] = (own("node-1"), ClusterGone("it"), StopRequested(), TimePassed())
    heard = told.life.heard
    assert told.hears(*late, after_s=60) == []
    assert told.life.heard == heard
    assert (told.life.status, told.life.cause) == ("done", None)


def test_what_was_heard_last_is_kept_with_its_time_and_time_alone_is_not() -> None:
    told = Told()
    told.life.begin(5 * S)
    told.now_ns = 5 * S
    for _ in range(RECENT):
        told.hears(HostSilent("id-9", "is not ours"), TimePassed(), after_s=0.5)
    told.hears(own("node-2", "step 'halve': it raised\n  in line 3"), after_s=0.25)
    assert len(told.life.heard) == RECENT
    assert told.life.heard[-2] == "10.000 node id-9 is silent: is not ours"
    assert told.life.heard[-1] == (
        "10.250 slot 'node-2' ended as failed (OperatorError: step 'halve': it raised)"
    )


def test_every_stimulus_says_itself_in_one_line() -> None:
    lines = [
        str(one)
        for one in (
            done("node-1"),
            own("node-1", "a\nb"),
            SlotDied("node-1", "a\nb"),
            HostSilent("id-1", "x" * 999),
            DeadNodes({"id-1": "a\nb"}),
            DeadNodes(),
            ClusterGone("it"),
            ClusterThere(),
            StopRequested(),
            ResultsFetched(),
            FinalReportsCollected(),
        )
    ]
    assert all(re.fullmatch(r"[^\n]{5,200}", line) for line in lines), lines
    assert len({*lines}) == len(lines)


def test_no_patience_is_refused() -> None:
    with pytest.raises(SettingError, match="stop_s=0 must be above 0"):
        TimeLimits(stop_s=0)
