"""Tuner in virtual time: the same control loop as on Ray, with a model's delays.

```
ControlLoop ── Ask, Tell ──▶ (link) ──▶ Slot.samples, Slot.apply
     ▲                                        │
     └── heard ◀── (link) ◀───────────────────┘      dies, and a successor goes on with its state
```
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np

from slackwater.runtime.control.commands import Command, SetRelease
from slackwater.runtime.control.deciders import Wanted
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import (
    Action,
    Ask,
    ControlLoop,
    Decide,
    Decider,
    LoopState,
    Tell,
    WakeAt,
    name_of,
)
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.plan.expected import ExpectedLatency
from slackwater.runtime.shown import in_words
from slackwater.runtime.simulate.models import TunerModel
from slackwater.runtime.tune import JobDeciders, MakeEstimator, TuningRecord

KEEPS = 1_000
"""Intervals whose samples a tuner keeps for a successor."""


class TunerHost(Protocol):
    """Simulator, as a tuner sees it."""

    now_ns: int

    def keep_at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time, in this attempt or in a later one."""
        ...

    @property
    def pending(self) -> int:
        """Number of scheduled calls."""
        ...

    def answers(self, slot: str) -> bool:
        """Whether a slot answers questions and commands."""
        ...

    def samples_of(self, slot: str) -> list[StageSample]:
        """Return each sample of a slot's past intervals once."""
        ...

    def apply(self, slot: str, command: Command, number: tuple[int, int]) -> None:
        """Apply a command to a slot."""
        ...


class SimulatedTuner:
    """Tuner of one run; messages still under way at the end are lost.

    Args:
        graph: graph of a flow with a deadline.
        policies: decide; where their commands differ, the first in the list prevails.
        host: simulator that runs it.
        expected: predicted latency of the flow, to compare with; None if not predicted.
        estimator: maker of the live estimate beside it; None if a run has no estimate.
        model: its delays and deaths.
        rng: draws the delays of its messages.

    Attributes:
        samples: all samples, in the order of arrival.
        settings: rules wanted by the policies: (interval, rule).
    """

    def __init__(
        self,
        graph: FlowGraph,
        policies: Sequence[Decider],
        host: TunerHost,
        *,
        expected: ExpectedLatency | None = None,
        estimator: MakeEstimator | None = None,
        model: TunerModel,
        rng: np.random.Generator,
    ) -> None:
        self._graph, self._host, self._model, self._rng = graph, host, model, rng
        self._expected, self._estimator = expected, estimator
        self._interval_ns, self._start_ns = graph.interval_ns, host.now_ns
        self._pristine = copy.deepcopy(policies) if model.deaths_ns else policies
        self.samples: list[StageSample] = []
        self.settings: list[tuple[int, SetRelease]] = []
        self._lives = 0  # number of earlier tuners
        self._is_alive = True
        self._fetched: LoopState | None = None  # the state that the job has, a round old
        self._mine = 0  # scheduled calls of this tuner
        self._wake_ns: int | None = None
        self._is_asleep = False  # only calls of this tuner are scheduled
        self._loop, self._policy = self._made(policies, None)

    def _made(
        self, policies: Sequence[Decider], before: LoopState | None
    ) -> tuple[ControlLoop, JobDeciders]:
        resumed = None if before is None else before.report
        record = TuningRecord(
            self._graph, policy=", ".join(map(name_of, policies)), resumed=resumed
        )
        loop = ControlLoop(
            self._graph,
            record,
            keeps=KEEPS * len(self._graph.parts),
            turn=self._lives,
            before=before,
        )
        deciders = JobDeciders(
            [partial(_same, policy) for policy in policies],
            self._graph,
            expected=self._expected,
            estimator=self._estimator,
            resumed=None if before is None else before.prediction,
            before=() if before is None else before.samples,
        )
        return loop, deciders

    def begin(self) -> None:
        """Begin at the start of the first interval, once the slots run."""
        for dies_ns, back_ns in self._model.deaths_ns:
            self._at(dies_ns, self._die)
            self._at(back_ns, self._come_back)
        self._start(left_ns=None)

    def _start(self, *, left_ns: int | None) -> None:
        first, now_ns = self._policy.begin(), self._host.now_ns
        self._note((now_ns - self._start_ns) // self._interval_ns, first)
        # A run begins before any other call is scheduled.
        self._perform(self._loop.begin(now_ns, first, left_ns=left_ns), is_first=True)

    def moved(self, graph: FlowGraph) -> None:
        """Use the slots of a new graph of the same stages."""
        self._graph = graph
        self._loop.moved(graph)
        self._policy.moved(graph)

    def report(self) -> TuningReport | None:
        """Return the tuning report so far; None if there is no tuner."""
        if not self._pristine:
            return None
        known = self._policy.noted(self._loop.state(is_last=True).report)
        return replace(known, restarts=self._lives)

    def prediction(self, *, is_last: bool) -> PredictionReport | None:
        """Return predicted and measured latency; None if nothing was predicted.

        Args:
            is_last: whether the run is over: then samples still in the slots count, too.
        """
        if is_last:
            for slot in self._graph.slot_names:
                self._policy.heard(self._host.samples_of(slot))
            self._policy.heard([], is_last=True)
        return self._policy.prediction()

    # -- actions of the loop --------------------------------------------------------------------

    def _perform(self, actions: Sequence[Action], *, is_first: bool = False) -> None:
        todo, wake_ns = deque(actions), None
        while todo:
            match todo.popleft():
                case Ask(slot):
                    todo.extend(self._ask(slot))
                case Decide(interval, samples):
                    wanted = self._policy.decide(interval, samples)
                    self._note(interval + 1, wanted)
                    todo.extend(self._decided(wanted))
                case Tell() as tell:
                    self._loop.note_sent(tell)
                    self._tell(tell)
                case WakeAt(at_ns):
                    wake_ns = at_ns
        if wake_ns is not None:
            self._wake_ns, self._is_asleep = wake_ns, False
            self._sleep(is_first=is_first)

    def _note(self, interval: int, wanted: Sequence[Wanted]) -> None:
        commands = [command for each in wanted for command in each.commands]
        self.settings += [
            (interval, command) for command in commands if isinstance(command, SetRelease)
        ]

    def _decided(self, wanted: Sequence[Wanted]) -> list[Action]:
        loop, host = self._loop, self._host
        if not self._model.takes_ns:
            return loop.decided(wanted, host.now_ns)
        self._living(self._model.takes_ns, lambda: loop.decided(wanted, host.now_ns))
        return []

    def _ask(self, slot: str) -> list[Action]:
        if not self._host.answers(slot):
            return []
        if self._model.link is None:
            return self._hear(slot, self._host.samples_of(slot), self._left_ns())
        turn = self._lives

        def answer() -> None:  # a slot answers even if the tuner is dead by then: it is lost
            if not self._host.answers(slot):
                return
            samples = self._host.samples_of(slot)
            left_ns = self._left_ns()
            if turn == self._lives and self._is_alive:
                self._living(self._travel_ns(), lambda: self._hear(slot, samples, left_ns))

        self._at(self._host.now_ns + self._travel_ns(), answer)
        return []

    def _hear(self, slot: str, samples: list[StageSample], left_ns: int) -> list[Action]:
        self.samples += samples
        self._policy.heard(samples)
        return self._loop.heard(slot, samples, self._host.now_ns, left_ns=left_ns)

    def _tell(self, tell: Tell) -> None:
        def arrive() -> None:
            if not self._host.answers(tell.slot):
                return
            try:
                self._host.apply(tell.slot, tell.command, tell.number)
            except SettingError as problem:
                self._loop.refused(in_words(problem))

        if self._model.link is None:
            arrive()
        else:
            self._at(self._host.now_ns + self._travel_ns(), arrive)

    def _left_ns(self) -> int:
        return self._interval_ns - (self._host.now_ns - self._start_ns) % self._interval_ns

    def _travel_ns(self) -> int:
        assert self._model.link is not None, "else nothing travels"
        return self._model.link.travel_ns(self._rng)

    # -- its life -------------------------------------------------------------------------------

    def _at(self, at_ns: int, happen: Callable[[], None]) -> None:
        self._mine += 1

        def mine() -> None:
            self._mine -= 1
            happen()
            if self._is_asleep:
                self._sleep()

        self._host.keep_at(at_ns, mine)

    def _living(self, after_ns: int, happen: Callable[[], list[Action]]) -> None:
        """Schedule a call of the tuner, unless it is dead by then."""
        turn = self._lives

        def living() -> None:
            if turn == self._lives and self._is_alive:
                self._perform(happen())

        self._at(self._host.now_ns + after_ns, living)

    def _sleep(self, *, is_first: bool = False) -> None:
        """Wake at the loop's time; a tuner alone does not keep a run going."""
        wake_ns = self._wake_ns
        self._is_asleep = not is_first and self._host.pending <= self._mine
        if wake_ns is None or self._is_asleep:
            return

        def wake() -> list[Action]:
            if self._wake_ns != wake_ns:  # the loop has chosen another time meanwhile
                return []
            self._wake_ns = None
            if self._model.deaths_ns:
                state = self._loop.state()
                self._fetched = replace(
                    state,
                    report=self._policy.noted(state.report),
                    prediction=self._policy.prediction(),
                )
            return self._loop.tick(self._host.now_ns)

        self._living(max(wake_ns - self._host.now_ns, 0), wake)

    def _die(self) -> None:
        self._is_alive, self._is_asleep, self._wake_ns = False, False, None

    def _come_back(self) -> None:
        self._lives += 1
        self._is_alive = True
        known = [] if self._fetched is None else self._fetched.samples
        successor = self._model.successor
        policies = copy.deepcopy(self._pristine) if successor is None else [successor(known)]
        self._loop, self._policy = self._made(policies, self._fetched)
        self._start(left_ns=0)


def _same(policy: Decider) -> Decider:
    return policy
