"""Run the SLTuner of [ssg] §5 as a Ray actor, in its own process.

The live estimate of a job's latency ([mace]) runs here, too, on the same samples.

```
slots ── samples, interval by interval ──▶ ControlLoop ──▶ policy ── commands ──▶ slots
                                        └── state ──▶ actors/tuning/supervisor.py, which restarts us
```

`runtime/control/loop.py` says what happens when; this file has its thread, its clock and the calls.
A policy may take seconds to decide, and no slot waits for it: slots answer between two slices,
their answers are kept until the next round, and another thread serves the state.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.kernel.process_identity import PidFile
from slackwater.actors.slot.slot_samples import SlotSamples
from slackwater.actors.tuning.sample_history import JobHistory, in_order, most_samples
from slackwater.runtime.config import Tuning
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
)
from slackwater.runtime.foresight.live import LiveEstimate
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.plan.expected import ExpectedLatency
from slackwater.runtime.tune import JobDeciders, TuningRecord, make_policy

__all__ = ["Tuner", "TunerState"]

THREADS = 4
ANSWER_S = 0.5
"""A slot that takes longer, or longer than half an interval, is omitted from it; its answer counts
in the next ones."""
LAG_NS = 20_000_000
"""How long after the end of a second the slots are asked: their clocks differ a little."""
LAST_S = 1.0
"""How long the last round may wait for a decision under way."""
NICE = 10
"""Slots have priority where they share a core with a policy that trains."""


@dataclass
class TunerState(LoopState):
    """State of a tuner that its successor needs.

    Attributes:
        pid: id of its process.
    """

    pid: int = 0


class Tuner:
    """Sets the rules of one job's gates: call `start` once.

    Args:
        graph: graph of the flow.
        tuning: the user's settings; None if no slack is to be set.
        expected: prediction for the flow; None if there is no prediction.
        before: state of the tuner that this one replaces.
        turn: number of tuners that the job had before this one.
        note: where this process leaves its note first of all; it exits if the note's folder is
            gone. None if no note is wanted.
    """

    def __init__(
        self,
        graph: FlowGraph,
        tuning: Tuning | None,
        *,
        expected: ExpectedLatency | None = None,
        before: TunerState | None = None,
        turn: int = 0,
        note: PidFile | None = None,
    ) -> None:
        if note is not None:
            note.write_or_exit()  # before any policy may hold the interpreter
        self._graph, self._tuning, self._expected = graph, tuning, expected
        self._resumed = None if before is None else before.prediction
        self._before = [] if before is None else before.samples
        resumed = None if before is None else before.report
        self._loop = ControlLoop(
            graph,
            TuningRecord(
                graph, policy="" if tuning is None else tuning.policy_name, resumed=resumed
            ),
            keeps=most_samples(graph, tuning),
            lag_ns=LAG_NS,
            answer_ns=min(round(ANSWER_S * 1e9), graph.interval_ns // 2),
            turn=turn,
            before=before,
        )
        self._policy: JobDeciders | None = None
        self._history = JobHistory(graph, tuning)
        self._slots: dict[str, Any] = {}  # {slot: its actor}; lost slots are removed
        self._calls: dict[Any, str] = {}  # {call: slot} that has not answered yet
        self._wake_ns = 0
        self._lock = threading.Lock()  # around the loop
        self._hearing = threading.Lock()  # around calls to the slots
        self._may_begin = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="tuner", daemon=True)
        self._thread.start()  # a policy may start slowly: let it, while slots start

    # -- calls from the job --------------------------------------------------------------------

    def start(self, slots: Mapping[str, Any]) -> None:
        """Begin to set slacks; {slot: its actor}."""
        if not self._may_begin.is_set():
            self._slots = dict(slots)
            self._may_begin.set()

    def moved(self, graph: FlowGraph, slots: Mapping[str, Any]) -> None:
        """Record that stages have moved: from now on ask and command these slots."""
        self._graph = graph
        with self._lock:
            self._slots = dict(slots)
            self._loop.moved(graph)
        if self._policy is not None:
            self._policy.moved(graph)

    def state(self, known: int, *, is_last: bool = False) -> TunerState:
        """Return the present state; of samples only those after the first `known`."""
        with self._lock:
            now = self._loop.state(known, is_last=is_last)
        report, prediction = now.report, self._resumed
        if self._policy is not None:
            report, prediction = self._policy.noted(report), self._policy.prediction()
        report.status = {**report.status, **self._history.words}
        return TunerState(report, now.samples, now.heard, prediction, os.getpid())

    def finish(self, slots: Mapping[str, Any]) -> TunerState:
        """Ask the slots for a last time, decide nothing more, and return the last state.

        Args:
            slots: slots as for `start`: calls may overtake each other in a short job.
        """
        self._is_over.set()
        self.start(slots)
        self._thread.join(LAST_S)
        with self._lock:
            last = self._loop.end(time.monotonic_ns())
        self._perform(last)
        self._hear(ANSWER_S)
        if self._policy is not None:
            self._policy.heard([], is_last=True)
        with self._lock:
            samples, heard = self._loop.samples, self._loop.state().heard
        self._history.save(samples)
        return self.state(heard, is_last=True)

    # -- the thread that tunes -----------------------------------------------------------------

    def _live(self) -> None:
        try:
            os.nice(NICE)  # of this thread, on Linux
            self._tune()
        except BaseException:  # a fault of ours: the supervisor must see it
            traceback.print_exc()
            os._exit(1)

    def _tune(self) -> None:
        history = self._history.load() + in_order(self._before)
        tuning = self._tuning
        self._policy = JobDeciders(
            [] if tuning is None else [partial(_made, self._graph, tuning, history)],
            self._graph,
            expected=self._expected,
            estimator=LiveEstimate,
            resumed=self._resumed,
            before=in_order(self._before),
        )
        first = self._policy.begin()
        self._tell_trouble(self._policy)
        self._may_begin.wait()
        if self._is_over.is_set():
            return
        with self._lock:
            actions = self._loop.begin(time.monotonic_ns(), first, left_ns=0)
        self._perform(actions)
        while not self._is_over.is_set():
            rest_s = (self._wake_ns - time.monotonic_ns()) / 1e9
            if rest_s <= 0:
                with self._lock:
                    actions = self._loop.tick(time.monotonic_ns())
                self._perform(actions)
            elif self._loop.is_asking:
                self._perform(self._hear(rest_s))
            else:
                self._is_over.wait(rest_s)

    def _perform(self, actions: Sequence[Action]) -> None:
        todo = deque(actions)
        while todo:
            match todo.popleft():
                case Ask(slot):
                    todo.extend(self._ask(slot))
                case Decide(interval, samples):
                    assert self._policy is not None, "the thread begins with one"
                    wanted = self._policy.decide(interval, samples)
                    self._tell_trouble(self._policy)
                    with self._lock:
                        todo.extend(self._loop.decided(wanted, time.monotonic_ns()))
                case Tell() as tell:
                    self._tell(tell)
                case WakeAt(at_ns):
                    self._wake_ns = at_ns

    def _ask(self, slot: str) -> list[Action]:
        actor = self._slots.get(slot)
        if actor is None:
            with self._lock:
                return self._loop.gone(slot, time.monotonic_ns())
        with self._hearing:
            self._calls[actor.call.remote("samples")] = slot
        return []

    def _tell(self, tell: Tell) -> None:
        actor = self._slots.get(tell.slot)
        if actor is not None:
            # A slot's calls may overtake each other: the number says which is the newest.
            actor.call.remote("apply", tell.command, tell.number)
            with self._lock:
                self._loop.note_sent(tell)

    def _hear(self, within_s: float) -> list[Action]:
        """Wait for the answers of all asked slots, at most `within_s`."""
        actions: list[Action] = []
        with self._hearing:
            calls = list(self._calls)
            if calls:
                answered = ray.wait(calls, num_returns=len(calls), timeout=within_s)[0]
                for call in answered:
                    actions += self._heard(call, self._calls.pop(call))
        return actions

    def _heard(self, call: Any, slot: str) -> list[Action]:
        answer: SlotSamples | None = None
        problem: RayError | None = None
        try:
            answer = ray.get(call)
        except TimeoutError:
            pass  # a slice that takes seconds: asked again in the next round
        except RayError as raised:  # its worker is lost, which ends the job
            problem = raised
            print(f"slot {slot!r}: {problem}", file=sys.stderr)  # noqa: T201 a worker's log
            self._slots.pop(slot, None)
        if answer is not None and self._policy is not None:
            self._policy.heard(answer.samples)
        now_ns = time.monotonic_ns()
        with self._lock:
            if problem is not None:
                return self._loop.gone(slot, now_ns)
            if answer is None:
                return self._loop.unheard(slot, now_ns)
            for why in answer.refused:
                self._loop.refused(why)
            return self._loop.heard(slot, answer.samples, now_ns, left_ns=answer.left_ns)

    def _tell_trouble(self, policies: JobDeciders) -> None:
        for trace in policies.take_traces():
            print(trace, file=sys.stderr)  # noqa: T201 a worker's log


def _made(graph: FlowGraph, tuning: Tuning, history: Sequence[StageSample]) -> Decider:
    policy = make_policy(graph, tuning, history=history)
    assert policy is not None, "checked at submit: the flow has a gate to tune"
    return policy
