"""The SLTuner of [ssg] §5 as a Ray actor: beside the job's control, in a process of its own.

```
slots ── samples, once a second ──▶ record ──▶ policy ── set_slack ──▶ slots
                                      └── state ──▶ actors/tuning/care.py, which restarts us
```

A policy may take seconds to decide. Nobody waits for it: slots answer between two slices, their
answers are kept until the next round, and the state is told by another thread.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from actors.kernel.own_process import NotePlace
from actors.slot.orders import SlackSetting
from actors.slot.report import SlotSamples
from actors.tuning.sample_history import SampleHistory, in_order
from runtime.config import Tuning
from runtime.measure.samples import StageSample
from runtime.measure.tuning import TuningReport
from runtime.model import NS_PER_SECOND
from runtime.plan.plan import Plan
from runtime.tune import GuardedPolicy, SetSlack, TuningRecord, make_policy

__all__ = ["Tuner", "TunerState", "graph_of"]

THREADS = 4
ANSWER_S = 0.5
"""A slot that takes longer is left out of this second; its answer counts in the next ones."""
LAG_S = 0.02
"""How long after the end of a second the slots are asked for it: their clocks differ a little."""
LEAST_S = 0.1
"""Between two rounds, however slow a policy is."""
LAST_S = 1.0
"""How long the last round may wait for a decision that is under way."""
NICE = 10
"""Slots go first where they share a core with a policy that trains."""


@dataclass
class TunerState:
    """What a tuner knows, and what another one in its place must.

    Attributes:
        report: how the deadline was kept.
        samples: what it has heard since it was last asked.
        heard: how many samples it has heard in all: say so when asking for the next ones.
        pid: of its process.
    """

    report: TuningReport
    samples: list[StageSample] = field(default_factory=list)
    heard: int = 0
    pid: int = 0


def graph_of(plan: Plan) -> Plan:
    """Return the plan without what only slots need: inputs, users' functions, sinks.

    A table that is read from memory need not travel to the tuner, nor be importable there.
    """
    stages = (replace(stage, step=stage.step.bare(), chain=()) for stage in plan.stages)
    return replace(plan, stages=tuple(stages))


class Tuner:
    """Sets the slacks of one job: call `start` once.

    Args:
        plan: its graph, see `graph_of`.
        tuning: what the user asked for.
        before: what the tuner in whose place this one is knew.
        turn: how many tuners the job had before this one.
        note: where to say first of all which process this is; it ends if nobody wants to know
            any more. None: nobody ever did.
    """

    def __init__(
        self,
        plan: Plan,
        tuning: Tuning,
        *,
        before: TunerState | None = None,
        turn: int = 0,
        note: NotePlace | None = None,
    ) -> None:
        if note is not None:
            note.sign_or_end()  # before any policy may keep the interpreter to itself
        self._plan, self._tuning, self._before = plan, tuning, before
        resumed = None if before is None else before.report
        self._record = TuningRecord(plan, policy=tuning.policy, resumed=resumed)
        self._policy: GuardedPolicy | None = None
        kept = tuning.window_s * len(plan.stages)
        self._samples: deque[StageSample] = deque(maxlen=kept)
        self._history: SampleHistory | None = None
        if tuning.history is not None:
            self._history = SampleHistory(Path(tuning.history), plan, most=kept)
        self._kept: dict[str, str] = {}  # what there is to say of the history
        self._heard = 0
        self._slots: dict[str, Any] = {}  # {slot: its actor}; those that are gone leave
        self._asked: dict[Any, str] = {}  # {call: slot} that has not answered yet
        self._set_to: dict[str, SlackSetting] = {}  # {stage: what it was told last}
        self._turn, self._sent = turn, 0
        self._next_s = 0.0
        self._lock = threading.Lock()  # around the record and the samples
        self._hearing = threading.Lock()  # around what is asked of the slots
        self._may_begin = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="tuner", daemon=True)
        if before is not None:
            self._take(before.samples)
        self._thread.start()  # a policy may take its time to be made: let it, while slots start

    # -- calls from the job --------------------------------------------------------------------

    def start(self, slots: Mapping[str, Any]) -> None:
        """Begin to set slacks; {slot: its actor}."""
        if not self._may_begin.is_set():
            self._slots = dict(slots)
            self._may_begin.set()

    def state(self, known: int, *, is_last: bool = False) -> TunerState:
        """Return what is known now; of samples those behind the first `known`."""
        with self._lock:
            report = self._record.report(is_last=is_last)
            new = min(self._heard - known, len(self._samples))
            samples = list(self._samples)[len(self._samples) - new :] if new > 0 else []
            heard = self._heard
        if self._policy is not None:
            report = self._policy.noted(report)
        report.status = {**report.status, **self._kept}
        return TunerState(report, samples, heard, os.getpid())

    def finish(self, slots: Mapping[str, Any]) -> TunerState:
        """Hear the slots for a last time, decide nothing more, and return what is known.

        Args:
            slots: as for `start`: calls may overtake each other, and a short job is over at once.
        """
        self._is_over.set()
        self.start(slots)
        self._thread.join(LAST_S)
        self._hear()
        if self._history is not None:
            problem = self._history.save(list(self._samples), job=f"{time.time_ns()}")
            if problem is not None:
                read = self._kept.get("history", "not read")
                self._kept["history"] = f"not kept: {problem}; {read}"
        return self.state(self._heard, is_last=True)

    # -- the thread that tunes -----------------------------------------------------------------

    def _live(self) -> None:
        try:
            os.nice(NICE)  # of this thread, on Linux
            self._tune()
        except BaseException:  # a fault of ours: whoever restarts us must see it
            traceback.print_exc()
            os._exit(1)

    def _tune(self) -> None:
        history: list[StageSample] = []
        if self._history is not None:
            history, self._kept["history"] = self._history.load()
        if self._before is not None:
            history += in_order(self._before.samples)
        policy = GuardedPolicy(lambda: _made(self._plan, self._tuning, history), self._plan.tuned)
        self._policy = policy
        first = policy.begin()
        self._tell_trouble(policy)
        self._may_begin.wait()
        # What a tuner before us has set stays.
        was_set = {gate.stage for gate in self._record.report().gates if gate.by}
        if not self._is_over.is_set():
            self._set([one for one in first if one.stage not in was_set])
        while not self._is_over.is_set():
            silent = self._hear()
            with self._lock:
                due = self._record.due(silent=silent)
            wanted: list[SetSlack] = []
            for second, samples in due:  # several after a decision that took seconds
                wanted += policy.decide(second, samples)
                self._tell_trouble(policy)
            self._set(wanted)
            self._is_over.wait(max(self._next_s - time.monotonic(), LEAST_S))

    def _hear(self) -> set[str]:
        """Ask all slots for their samples; return the stages of those that do not answer."""
        with self._hearing:
            heard = self._heard_slots()
        return {stage for stage, slot in self._plan.slots.items() if slot not in heard}

    def _heard_slots(self) -> set[str]:
        waiting = set(self._asked.values())
        for slot, actor in self._slots.items():
            if slot not in waiting:
                self._asked[actor.call.remote("samples")] = slot
        calls = list(self._asked)
        answered = ray.wait(calls, num_returns=len(calls), timeout=ANSWER_S)[0] if calls else []
        heard: set[str] = set()
        left_ns = 0
        for call in answered:
            slot = self._asked.pop(call)
            try:
                answer: SlotSamples = ray.get(call)
            except TimeoutError:
                continue  # one slice that takes seconds: asked again in the next round
            except RayError as problem:  # its worker has gone, which ends the job by itself
                print(f"slot {slot!r}: {problem}", file=sys.stderr)  # noqa: T201 a worker's log
                self._slots.pop(slot)
                continue
            self._take(answer.samples)
            heard.add(slot)
            left_ns = max(left_ns, answer.left_ns)
        self._next_s = time.monotonic() + (left_ns or NS_PER_SECOND) / NS_PER_SECOND + LAG_S
        return heard

    def _take(self, samples: Sequence[StageSample]) -> None:
        with self._lock:
            self._record.add(samples)
            self._samples.extend(samples)
            self._heard += len(samples)

    def _set(self, settings: Sequence[SetSlack]) -> None:
        for one in {one.stage: one for one in settings}.values():  # the last of each stage
            actor = self._slots.get(self._plan.slots[one.stage])
            if actor is None:
                continue
            wanted = SlackSetting(one.slack_ns, one.hold_ns, one.waits_in_full, one.trials)
            if self._set_to.get(one.stage) != wanted:
                self._set_to[one.stage] = wanted
                self._sent += 1
                # A slot's calls may overtake each other: the number says which is the newest.
                actor.call.remote("set_slack", one.stage, wanted, (self._turn, self._sent))
            with self._lock:  # only now: who comes after us does not set again what was set
                self._record.was_set(one)

    def _tell_trouble(self, policy: GuardedPolicy) -> None:
        if policy.trace is not None:
            print(policy.trace, file=sys.stderr)  # noqa: T201 a worker's log
            policy.trace = None


def _made(plan: Plan, tuning: Tuning, history: Sequence[StageSample]) -> Any:
    policy = make_policy(plan, tuning, history=history)
    assert policy is not None, "checked at submit: the plan has a gate to tune"
    return policy
