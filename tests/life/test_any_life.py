"""Whatever a job hears, and whenever: it ends in time, once, and says one cause."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.life import (
    Action,
    AskForDead,
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
    TimePassed,
)
from tests.support.examples import eight_times
from tests.support.lives import NODE_IDS, SLOTS, TIME_LIMITS, S, Told

LONGEST_S = sum(
    (
        TIME_LIMITS.settle_s,
        TIME_LIMITS.check_s,
        TIME_LIMITS.dead_s,
        TIME_LIMITS.stop_s,
        TIME_LIMITS.cut_off_s,
    )
)
CHANNELS = ("numbers→gate", "gate→out")
slots = st.sampled_from(SLOTS)
ends = st.one_of(
    st.builds(SlotEnded, slots, st.sampled_from(["done", "stopped"])),
    st.builds(SlotEnded, slots, st.just("failed"), st.just("it raised"), st.just("OperatorError")),
    st.builds(
        SlotEnded,
        slots,
        st.just("failed"),
        st.just("a peer is gone"),
        st.just("WorkerDied"),
        st.lists(st.sampled_from(CHANNELS), unique=True).map(tuple),
    ),
)
bad_luck = st.one_of(
    st.builds(SlotDied, slots, st.just("killed")),
    st.builds(HostSilent, st.sampled_from(NODE_IDS), st.just("silence")),
    st.just(ClusterGone("the head is gone")),
    st.just(StopRequested()),
)
# Answers that nobody asked for, too: a host may be late with one.
answers = st.one_of(
    st.sampled_from([ClusterThere(), DeadNodes(), ResultsFetched(), FinalReportsCollected()]),
    slots.map(lambda slot: DeadNodes({}, {slot: "is stopped"}, (slot,))),
)
heard = st.one_of(ends, bad_luck, answers, st.just(TimePassed()))


class World:
    """A host that answers what it must, and what it may or may not; and checks all it is told."""

    def __init__(self, mood: st.DataObject) -> None:
        self.told, self.mood = Told(), mood
        self.stopped: list[str] = []
        self.end: End | None = None
        self.is_troubled = False  # a failure was heard, or a death, or the end of the cluster

    def hear(self, stimulus: Stimulus, *, after_s: float = 0.0) -> None:
        life = self.told.life
        before, living, was_over = life.cause, life.living, life.is_over
        actions = self.told.hears(stimulus, after_s=after_s)
        assert before is None or life.cause is before, "a cause was named, and is another now"
        assert {*life.living} <= {*living}
        assert not (was_over and actions)
        ended = {*life.ended} & {*living}
        is_failure = isinstance(stimulus, SlotEnded) and stimulus.has_failed and bool(ended)
        has_died = bool({*living} - {*life.living} - ended)
        is_gone = isinstance(stimulus, ClusterGone) and not was_over
        self.is_troubled |= is_failure or has_died or is_gone
        for action in actions:
            self.do(action)

    def do(self, action: Action) -> None:
        life = self.told.life
        assert self.end is None, f"{action} behind the end"
        match action:
            case StopSlots(names, failure):
                assert not {*names} & {*self.stopped}, "stopped twice"
                assert failure == (None if life.cause is None else life.cause.message)
                self.stopped += names
            case CollectFinalReports(names):
                assert life.cause is not None
                self.may(FinalReportsCollected())
            case CheckCluster():
                self.may(ClusterThere())
            case AskForDead():
                self.may(DeadNodes())
            case FetchResults(sinks):
                assert sinks in ((), ("out",))
                self.hear(ResultsFetched())  # the one that has to come
            case End(status, cause):
                self.end = action
                assert life.is_over
                assert (status == "failed") == (cause is not None)
                assert (status, cause) == (life.status, life.cause)

    def may(self, answer: Stimulus) -> None:
        if self.mood.draw(st.booleans()):
            self.hear(answer)


@eight_times
@given(mood=st.data(), run=st.lists(st.tuples(st.floats(0, 4), heard), max_size=25))
def test_a_life_in_which_anything_happens_ends_in_time_and_once(
    mood: st.DataObject, run: list[tuple[float, Any]]
) -> None:
    world = World(mood)
    life = world.told.life
    for after_s, stimulus in run:
        world.hear(stimulus, after_s=after_s)
        assert life.due_ns is None or life.due_ns <= world.told.now_ns + round(LONGEST_S * S)
    world.hear(StopRequested())
    asked_ns = world.told.now_ns
    while not life.is_over:
        assert life.due_ns is not None, "it waits for what may never come"
        world.hear(TimePassed(), after_s=max(life.due_ns - world.told.now_ns, 0) / S)
    assert world.told.now_ns - asked_ns <= LONGEST_S * S
    assert world.end is not None
    assert (world.end.status == "failed") == world.is_troubled
    assert {*world.stopped} <= {*SLOTS}
