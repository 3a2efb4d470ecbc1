"""The control loop: what happens in, what is to be done out; no host, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from slackwater.runtime.control.commands import Command, Move, Warn
from slackwater.runtime.control.deciders import Wanted
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import (
    Action,
    Ask,
    ControlLoop,
    Decide,
    LoopState,
    Tell,
    WakeAt,
)
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune import TuningRecord
from tests.support.graphs import node
from tests.support.rules import release

S = NS_PER_SECOND
GRAPH = FlowGraph(
    flow="one",
    steps=(
        node("buses", "a"),
        node("gate", "b", inputs=("buses",), is_tuned=True),
        node("out", "c", inputs=("gate",), is_sink=True),
    ),
    deadline_ns=6 * S,
)
STEP_OF = {part.slot: part.subject for part in GRAPH.parts}


def loop_of(*, before: LoopState | None = None, turn: int = 0, lag_ns: int = 0) -> ControlLoop:
    resumed = None if before is None else before.report
    record = TuningRecord(GRAPH, policy="mine", resumed=resumed)
    return ControlLoop(GRAPH, record, keeps=100, before=before, turn=turn, lag_ns=lag_ns)


def mine(commands: Sequence[Command]) -> list[Wanted]:
    """One decider, and what it wants."""
    return [Wanted("mine", commands)]


def sample(slot: str, second: int) -> StageSample:
    return StageSample(subject=STEP_OF[slot], second=second, rows=second + 1)


def begun(first: Sequence[Command] = (), *, lag_ns: int = 0) -> ControlLoop:
    """A loop that has asked all slots for their first second, and waits for answers."""
    one = loop_of(lag_ns=lag_ns)
    one.begin(0, mine(first))
    assert asked(one.tick(S)) == ["a", "b", "c"]
    return one


def asked(actions: Sequence[Action]) -> list[str]:
    return [one.slot for one in actions if isinstance(one, Ask)]


def told(actions: Sequence[Action]) -> list[tuple[Command, tuple[int, int]]]:
    return [(one.command, one.number) for one in actions if isinstance(one, Tell)]


def decides(actions: Sequence[Action]) -> dict[int, set[str]]:
    return {
        one.interval: {step.name for step in one.samples}
        for one in actions
        if isinstance(one, Decide)
    }


def answer(one: ControlLoop, slots: str, second: int, now_ns: int, **left: int) -> list[Action]:
    actions: list[Action] = []
    for slot in slots:
        actions += one.heard(slot, [sample(slot, second)], now_ns, **left)
    return actions


def test_it_begins_with_what_the_decider_wants_and_asks_when_a_second_is_over() -> None:
    one, first = loop_of(), release("gate", 5)
    actions = one.begin(7, mine([first]))
    assert actions == [Tell("b", first, (0, 1)), WakeAt(7 + S)]
    assert one.tick(7 + S) == [Ask("a"), Ask("b"), Ask("c"), WakeAt(7 + S + S // 2)]


def test_the_last_answer_of_a_round_makes_the_second_whole() -> None:
    one = begun()
    assert answer(one, "cb", 0, S + 5) == []
    assert decides(answer(one, "a", 0, S + 9)) == {0: {"buses", "gate", "out"}}
    wanted = release("gate", 8)
    assert one.decided(mine([wanted]), S + 20) == [Tell("b", wanted, (0, 1)), WakeAt(2 * S + 9)]


def test_it_wakes_a_little_behind_the_end_of_the_second_that_the_slots_count() -> None:
    one = begun(lag_ns=20)
    answer(one, "a", 0, S + 400, left_ns=S - 400)
    answer(one, "b", 0, S + 500, left_ns=S - 480)  # its clock is 20 ns behind
    answer(one, "c", 0, S + 500, left_ns=S - 500)
    assert one.decided(mine([]), S + 600) == [WakeAt(2 * S + 20 + 20)]
    late = begun()
    answer(late, "abc", 0, S, left_ns=S)
    assert late.decided(mine([]), 5 * S) == [WakeAt(5 * S + S // 10)], (
        "never at once: a decider is slow"
    )


def test_who_does_not_answer_is_left_out_and_counts_when_it_does() -> None:
    one = begun()
    answer(one, "ac", 0, S + 1)
    assert decides(one.tick(S + S // 2)) == {0: {"buses", "out"}}
    one.decided(mine([]), S + S // 2)
    assert asked(one.tick(2 * S)) == ["a", "c"], "b is still being asked"
    answer(one, "ac", 1, 2 * S + 1)
    both = [StageSample(subject=Subject("gate"), second=second, slack_ready=7) for second in (0, 1)]
    assert decides(one.heard("b", both, 2 * S + 2)) == {1: {"buses", "gate", "out"}}
    one.decided(mine([]), 2 * S + 2)
    assert asked(one.tick(3 * S)) == ["a", "b", "c"]
    spans = one.state().report.series.spans
    assert [span.gates["gate"].slack_ready for span in spans] == [7, 7]


def test_who_could_not_answer_is_asked_again_and_who_is_gone_is_not() -> None:
    one = begun()
    assert one.unheard("a", S + 1) == []
    assert one.gone("b", S + 2) == []
    assert decides(answer(one, "c", 0, S + 3)) == {0: {"out"}}
    actions = one.decided(mine([release("gate", 5)]), S + 4)
    assert told(actions) == [], "nobody is there to be told"
    assert asked(one.tick(2 * S)) == ["a", "c"]


def test_seconds_that_came_together_are_shown_one_by_one_and_the_last_word_is_sent() -> None:
    one = begun()
    for slot in "ab":
        one.heard(slot, [sample(slot, second) for second in range(3)], S)
    assert decides(one.heard("c", [sample("c", second) for second in range(3)], S)) == {
        0: {"buses", "gate", "out"}
    }
    assert [*decides(one.decided(mine([release("gate", 1)]), S))] == [1]
    assert [*decides(one.decided(mine([release("gate", 2)]), S))] == [2]
    assert told(one.decided(mine([]), S)) == [(release("gate", 2), (0, 1))]


def test_a_rule_counts_as_set_only_once_it_was_sent() -> None:
    one = loop_of()
    (tell, _) = one.begin(0, mine([release("gate", 5)]))
    assert one.state().report.gates[0].by == ""
    assert isinstance(tell, Tell)
    one.note_sent(tell)
    assert one.state().report.gates[0].by == "mine"


def test_a_successor_knows_what_was_seen_leaves_what_was_set_and_has_higher_numbers() -> None:
    one = loop_of()
    (tell, _) = one.begin(0, mine([release("gate", 5)]))
    assert isinstance(tell, Tell)
    one.note_sent(tell)
    one.tick(S)
    answer(one, "abc", 0, S)
    known = one.state()
    assert (known.heard, len(known.samples)) == (3, 3)
    assert one.state(2).samples == known.samples[2:]
    other = loop_of(before=known, turn=1)
    assert told(other.begin(5 * S, mine([release("gate", 9), Move(Subject("out"), "a")]))) == [
        (Move(Subject("out"), "a"), (1, 1))
    ]
    other.tick(6 * S)
    assert decides(answer(other, "abc", 5, 6 * S)) == {5: {"buses", "gate", "out"}}
    assert told(other.decided(mine([release("gate", 7)]), 6 * S)) == [(release("gate", 7), (1, 2))]
    report = other.state().report
    assert [span.second for span in report.series.spans] == [0, 5]
    assert other.state().heard == 6


def test_at_the_end_all_are_heard_once_more_and_a_late_decision_is_told_to_nobody() -> None:
    one = begun()
    answer(one, "abc", 0, S)
    assert one.end(S + 1) == [Ask("a"), Ask("b"), Ask("c")]
    assert one.decided(mine([release("gate", 5)]), S + 2) == []
    assert answer(one, "abc", 1, S + 3) == []
    assert one.tick(9 * S) == []
    assert one.state(is_last=True).report.seconds == 2


def test_a_warning_is_for_the_report_and_a_refusal_is_the_deciders_mistake() -> None:
    one = begun()
    answer(one, "abc", 0, S)
    assert told(one.decided(mine([Warn(Subject("gate"), "it is far behind")] * 2), S)) == []
    one.refused("SettingError: no slot can do that yet")
    report = one.state().report
    assert report.warnings == {"gate: it is far behind": 2}
    assert (report.errors, report.last_error) == (1, "SettingError: no slot can do that yet")
    assert type(report).from_json(report.to_json()).to_json() == report.to_json()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_order_slots_answer_in_every_sample_is_in_the_report_once(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a draw, not a secret
    one, now_ns, shown = loop_of(), 0, []
    todo = one.begin(0, mine([]))
    kept: dict[str, list[StageSample]] = {slot: [] for slot in STEP_OF}
    waiting: list[str] = []
    wake_ns = 0

    def perform(actions: list[Action]) -> None:
        nonlocal wake_ns
        for action in actions:
            match action:
                case Ask(slot):
                    assert slot not in waiting, "asked while it is being asked"
                    waiting.append(slot)
                case Decide(second, samples):
                    shown.append((second, {*samples}))
                    perform(one.decided(mine([]), now_ns))
                case WakeAt(at_ns):
                    wake_ns = at_ns

    def hear(slot: str) -> None:
        waiting.remove(slot)
        given, kept[slot] = kept[slot], []
        perform(one.heard(slot, given, now_ns, left_ns=S - now_ns % S))

    perform(todo)
    for second in range(30):
        now_ns = (second + 1) * S
        for slot in STEP_OF:
            kept[slot].append(sample(slot, second))
        while wake_ns < now_ns + S:
            now_ns = max(now_ns, wake_ns)
            perform(one.tick(now_ns))
            for slot in chance.sample(waiting, chance.randint(0, len(waiting))):
                hear(slot)
    perform(one.end(now_ns))
    for slot in [*waiting]:
        hear(slot)
    assert [second for second, _ in shown] == sorted({second for second, _ in shown})
    report = one.state(is_last=True).report
    assert report.series.spans[-1].second == 29
    assert sum(span.results for span in report.series.spans) == sum(range(1, 31))
