"""What the control loop promises: taken up between any two inputs, it does what it would have."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random
from typing import Any

from slackwater.runtime.control.deciders import Wanted
from slackwater.runtime.control.loop import Action, Ask, ControlLoop, Decide, Tell, WakeAt
from tests.control.test_loop import GRAPH, S, loop_of, sample
from tests.support.rules import release

SEEDS = range(30)
STEPS = 80
SLOTS = [*GRAPH.slot_names]

Input = Callable[[ControlLoop], list[Action] | None]


class Host:
    """Drives a loop by chance, as its actions allow; keeps what went in and what came out."""

    def __init__(self, seed: int, *, renews: bool) -> None:
        self.chance = Random(seed)  # noqa: S311 - a draw, not a secret
        self.loop, self.renews = loop_of(lag_ns=self.chance.choice([0, 1_000])), renews
        self.now_ns, self.wake_ns = 0, 0
        self.asked: dict[str, int] = {}  # {slot: the second that it counts}
        self.seconds = dict.fromkeys(SLOTS, 0)
        self.deciding: Decide | None = None
        self.out: list[Action] = []

    def give(self, made: Input) -> None:
        if self.renews:
            self.loop = pickle.loads(pickle.dumps(self.loop))  # noqa: S301 - our own bytes
        for action in made(self.loop) or []:
            self.out.append(action)
            match action:
                case Ask(slot):
                    self.asked[slot] = self.seconds[slot]
                case Decide():
                    assert self.deciding is None, "one interval at a time"
                    self.deciding = action
                case WakeAt(at_ns):
                    assert at_ns > self.now_ns, "it never wakes at once"
                    self.wake_ns = at_ns
                case Tell():
                    self.give(lambda loop, tell=action: loop.note_sent(tell))

    def run(self) -> list[Any]:
        self.give(lambda loop: loop.begin(0, [Wanted("own", [release("gate", 5)])]))
        for _ in range(STEPS):
            self.step()
        self.give(lambda loop: loop.end(self.now_ns))
        state = self.loop.state(is_last=True)
        return [*self.out, state.samples, state.heard, state.report.to_json()]

    def step(self) -> None:
        chance = self.chance
        self.now_ns += chance.randrange(S // 4)
        if self.now_ns >= self.wake_ns:
            self.give(lambda loop: loop.tick(self.now_ns))
        elif self.deciding is not None and chance.random() < 0.6:
            self.deciding = None
            wanted = [release("gate", chance.randrange(9))] * chance.randrange(3)
            self.give(lambda loop: loop.decided([Wanted("own", wanted)], self.now_ns))
        elif self.asked and (slot := chance.choice([*self.asked])):
            second = self.asked.pop(slot)
            if chance.random() < 0.1:
                self.give(lambda loop: loop.unheard(slot, self.now_ns))
                return
            self.seconds[slot] = second + 1
            told = [sample(slot, second)]
            self.give(lambda loop: loop.heard(slot, told, self.now_ns))
        elif chance.random() < 0.2:
            self.give(lambda loop: loop.refused("SettingError: no"))


def test_a_loop_that_is_taken_up_between_any_two_inputs_does_the_same() -> None:
    decided = 0
    for seed in SEEDS:
        whole, broken = Host(seed, renews=False).run(), Host(seed, renews=True).run()
        assert broken == whole, f"seed {seed}"
        decided += sum(isinstance(one, Decide) for one in whole)
    assert decided > len(SEEDS), "most have decided on something"


def test_numbers_of_what_is_told_ascend_and_who_is_gone_is_told_nothing() -> None:
    for seed in SEEDS:
        host = Host(seed, renews=False)
        host.run()
        numbers = [one.number for one in host.out if isinstance(one, Tell)]
        assert numbers == sorted(set(numbers))
        lost = Host(seed, renews=False)
        lost.give(lambda loop: loop.gone("b", 0))
        lost.run()
        assert [one for one in lost.out if isinstance(one, Tell)] == []
