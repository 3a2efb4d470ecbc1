"""Several deciders on one loop: each under its name, and the first one's word prevails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from slackwater.runtime.control.commands import Command, Move, SetRelease, Shed, Warn
from slackwater.runtime.control.deciders import Wanted, settled
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation, TunerModel
from tests.control.test_loop import S, answer, begun, told
from tests.simulate.test_far_tuner import PLAN
from tests.support.rules import release

TWO, FIVE = release("gate", 2), release("gate", 5)


def by(command: Command, name: str) -> Command:
    return replace(command, by=name)


def test_what_one_decider_wants_is_left_as_it_is() -> None:
    commands = [TWO, FIVE, Move(Subject("gate"), "a"), Warn(Subject("gate"), "slow")]
    assert settled([Wanted("one", commands)]) == (commands, [])


def test_of_two_who_want_different_things_of_a_gate_the_first_has_it_and_the_other_is_named() -> (
    None
):
    done, refused = settled(
        [Wanted("one", [TWO]), Wanted("other", [FIVE, Shed(Subject("gate"), 100)])]
    )
    assert done == [by(TWO, "one"), by(Shed(Subject("gate"), 100), "other")]
    (why,) = refused
    assert why.startswith("other: SetRelease of step 'gate' is left out, for one, which stands")


def test_names_of_their_own_stay_and_who_wants_the_same_is_no_conflict() -> None:
    named = by(TWO, "its rule")
    assert settled([Wanted("one", [named]), Wanted("other", [TWO])]) == ([named], [])


def test_a_decider_that_changes_its_mind_is_judged_by_its_last_word() -> None:
    done, refused = settled([Wanted("one", [TWO, FIVE]), Wanted("other", [FIVE, TWO])])
    assert done == [by(TWO, "one"), by(FIVE, "one")], "of which the loop sends the last"
    assert len(refused) == 1, "the one that is not as the first's last"


def test_all_may_warn_of_one_stage_and_two_of_one_name_are_two() -> None:
    wanted = [
        Wanted("one", [Warn(Subject("gate"), "a"), TWO]),
        Wanted("one", [Warn(Subject("gate"), "b"), FIVE]),
    ]
    done, refused = settled(wanted)
    assert done == [
        by(Warn(Subject("gate"), "a"), "one"),
        by(TWO, "one"),
        by(Warn(Subject("gate"), "b"), "one"),
    ]
    assert len(refused) == 1


def test_the_loop_tells_what_is_settled_and_the_report_counts_what_is_refused() -> None:
    one = begun()
    answer(one, "abc", 0, S)
    actions = one.decided(
        [Wanted("one", [TWO]), Wanted("other", [FIVE, Move(Subject("out"), "a")])], S
    )
    assert [command for command, _ in told(actions)] == [
        by(TWO, "one"),
        by(Move(Subject("out"), "a"), "other"),
    ]
    report = one.state().report
    assert report.errors == 1
    assert (report.last_error or "").startswith("other: SetRelease of step 'gate'")
    answer(one, "abc", 1, 2 * S)
    assert one.state().report.errors == 1


class Sets:
    """Sets a slack in each second that it is meant for."""

    def __init__(self, name: str, slack_ns: int, *, every: int = 1) -> None:
        self.name, self._slack_ns, self._every = name, slack_ns, every

    def begin(self) -> Sequence[SetRelease]:
        return []

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
        del samples
        return [] if second % self._every else [release("both", self._slack_ns)]

    def status(self) -> dict[str, int]:
        return {"slack": self._slack_ns}


@pytest.mark.parametrize("tuner", [TunerModel(), TunerModel(link=LinkModel(delay_ns=10**6))])
def test_in_the_simulator_several_decide_and_the_report_has_all_of_them(tuner: TunerModel) -> None:
    deciders = [Sets("first", NS_PER_SECOND, every=2), Sets("second", 2 * NS_PER_SECOND)]
    run = Simulation(PLAN, egress=lambda *_: None, policy=deciders, tuner=tuner, cost=CostModel())
    report = run.run()
    assert report.ledger.is_balanced
    tuning = report.tuning
    assert tuning is not None
    assert tuning.policy == "first, second"
    assert tuning.status == {"first": {"slack": 10**9}, "second": {"slack": 2 * 10**9}}
    assert tuning.errors == (tuning.seconds + 1) // 2, "in each second in which both wanted it"
    assert "second: SetRelease of step 'both' is left out, for first" in (tuning.last_error or "")
    ruled = {span.gates["both"].by for span in tuning.series.spans}
    assert ruled == {"", "first", "second"}


def test_the_order_in_the_list_says_who_prevails() -> None:
    one, other = Sets("one", 10**9), Sets("other", 2 * 10**9)
    for deciders, name in (([one, other], "one"), ([other, one], "other"), ([one], "one")):
        report = Simulation(PLAN, egress=lambda *_: None, policy=deciders).run()
        assert report.tuning is not None
        assert report.tuning.gates[0].by == name
