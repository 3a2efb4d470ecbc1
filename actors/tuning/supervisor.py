"""Supervise a job's tuner: start it, restart it, end it with the job.

Slacks keep their values while no tuner runs, so nothing waits for this. Once a second the tuner's
state is fetched, for a successor.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.kernel.process_identity import PidFile
from slackwater.actors.nodes.in_band import InBand
from slackwater.actors.tuning.process import TunerProcess
from slackwater.actors.tuning.sample_history import most_samples
from slackwater.actors.tuning.tuner import THREADS, Tuner, TunerState
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import GateTuning, TuningReport
from slackwater.runtime.plan.plan import Plan

__all__ = ["BackOff", "TunerSupervisor"]

ASK_EVERY_S = 1.0
MAKE_S = 10.0
"""For Ray to accept the order for the first tuner; later ones are not waited for."""
SILENT_S = 60.0
"""A tuner that is silent for longer hangs; a new one may need some seconds to start."""
REFRESH_S = 0.5
FINISH_S = 3.0
UNHEARD_S = 1.0
"""How long to wait at the end for a tuner that has not answered yet."""


class TunerSupervisor:
    """Supervises the tuner of one job, if any. From one thread, but for `end`.

    Args:
        plan: every stage in a slot; without `tuning` and `expected` nothing is to be set or
            estimated, and all calls do nothing.
        folder: start of relative paths; this process's working folder if None.

    Attributes:
        pids: ids of its tuner's processes that have answered, the last one last.
    """

    def __init__(self, plan: Plan, *, folder: str | None = None) -> None:
        tuning = plan.tuning
        if tuning is not None and tuning.history is not None:
            history = Path(folder or os.getcwd()) / tuning.history
            tuning = replace(tuning, history=str(history))
        self._graph, self._tuning, self._expected = FlowGraph.of(plan), tuning, plan.expected
        self._is_idle = not plan.is_sampled
        self._slots: Mapping[str, Any] = {}
        self._tuner: TunerProcess | None = None
        self._is_begun = False  # the tuner knows the slots
        self._has_moved = False
        self._state: TunerState | None = None
        self.pids: list[int] = []
        self._samples: deque[StageSample] = deque()
        self._call: Any = None  # the call under way
        self._call_s = 0.0
        self._made_s = self._heard_s = 0.0
        self._restarts = 0
        self._back_off = BackOff()
        self._is_ended = self._is_cut_short = False
        self._again_s: float | None = None  # when to start the next tuner
        if not self._is_idle:
            self._samples = deque(maxlen=most_samples(self._graph, tuning))
            # Its process starts while those of the slots do.
            self._tuner = self._make(None)
            if tuning is not None:  # an estimate is not a reason to refuse a job
                self._check_made(self._tuner)

    def start(self, slots: Mapping[str, Any]) -> None:
        """Let the tuner set slacks, now that the slots run; {slot: its actor}."""
        self._slots = slots
        if self._tuner is not None:
            self._begin(self._tuner.actor)

    def moved(self, plan: Plan, slots: Mapping[str, Any]) -> None:
        """Record that stages have moved; {slot: its actor} of all."""
        self._graph, self._slots, self._has_moved = FlowGraph.of(plan), slots, True
        if self._tuner is not None and self._tuner.actor is not None and self._is_begun:
            self._tuner.actor.moved.remote(self._graph, dict(slots))

    def look(self, timeout_s: float = 0.0) -> None:
        """Fetch the tuner's state, waiting `timeout_s` at most; restart a dead tuner."""
        if self._is_idle or not self._slots:
            return
        now_s, tuner = time.monotonic(), self._tuner
        if tuner is None:
            if self._again_s is not None and now_s >= self._again_s:
                self._start_again()
            return
        if tuner.problem is not None:
            self._record_death()
        elif (actor := tuner.actor) is not None:  # else the actor is still being made
            self._ask(actor, now_s, timeout_s)

    def _check_made(self, tuner: TunerProcess) -> None:
        """Wait until Ray has accepted the order.

        Raises:
            ClusterError: Ray did not in time.
        """
        tuner.wait(MAKE_S)
        if tuner.actor is not None:
            return
        self.end()
        raise tuner.problem or ClusterError(
            "the head of the Ray cluster did not accept the order for a tuner within "
            f"{MAKE_S:g} s; its gcs_server may be gone or hang: see with `ray status` whether the "
            "head is up, then submit again"
        )

    def _begin(self, actor: Any) -> None:
        if actor is not None and not self._is_begun:
            self._is_begun = True
            actor.start.remote(self._slots)
            if self._has_moved:  # made with the earlier slots
                actor.moved.remote(self._graph, dict(self._slots))

    def _ask(self, actor: Any, now_s: float, timeout_s: float) -> None:
        self._begin(actor)
        if self._call is None and (timeout_s or now_s >= self._call_s + ASK_EVERY_S):
            known = 0 if self._state is None else self._state.heard
            self._call, self._call_s = actor.state.remote(known), now_s
        if self._call is None:
            return
        if ray.wait([self._call], timeout=timeout_s)[0]:
            call, self._call = self._call, None
            try:
                self._hear(ray.get(call, timeout=FINISH_S))
            except RayError:
                self._record_death()
        elif now_s > self._call_s + SILENT_S:
            self._record_death()

    def report(self, *, is_fresh: bool = False) -> TuningReport | None:
        """Return how the deadline was kept, as last heard; None if nothing is tuned.

        Args:
            is_fresh: ask the tuner first, and wait briefly.
        """
        if is_fresh:
            self.look(REFRESH_S)
        if self._tuning is None:
            return None
        if self._state is not None:
            known = self._state.report
        else:
            assert self._graph.deadline_ns is not None, "checked at submit"
            gates = [GateTuning(step.name) for step in self._graph.tuned]
            known = TuningReport(
                self._graph.deadline_ns,
                self._tuning.policy_name,
                gates=gates,
                interval_ns=self._graph.interval_ns,
            )
        return replace(known, restarts=self._restarts, is_cut_short=self._is_cut_short)

    def prediction(self) -> PredictionReport | None:
        """Return the prediction and its outcome, as last heard; None if none was made."""
        if self._expected is None:
            return None
        known = None if self._state is None else self._state.prediction
        return replace(
            known or PredictionReport.of(self._expected),
            restarts=self._restarts,
            is_cut_short=self._is_cut_short,
        )

    def finish(self) -> None:
        """Fetch the state for a last time after the job's end, and end the tuner."""
        if not self._is_idle and self._slots:
            self._is_cut_short = not self._has_finished(self._tuner)
        self.end()

    def _has_finished(self, tuner: TunerProcess | None) -> bool:
        actor = None if tuner is None else tuner.actor
        if actor is None:
            return False
        call = actor.finish.remote(self._slots)
        if ray.wait([call], timeout=UNHEARD_S if self._state is None else FINISH_S)[0]:
            with suppress(RayError):  # the tuner died as the job ended: its last state stands
                self._hear(ray.get(call, timeout=FINISH_S))
                return True
        return False

    def end(self) -> None:
        """End the tuner's process, and start no other. Idempotent, from any thread.

        The process is gone on return, unless the system cannot tell; takes some seconds at most.
        """
        self._is_ended = True
        self._kill()

    def _kill(self) -> None:
        tuner, self._tuner = self._tuner, None
        self._again_s = None
        if tuner is not None:
            tuner.end()

    def _hear(self, state: TunerState) -> None:
        self._samples.extend(state.samples)
        if state.pid not in self.pids:
            self.pids.append(state.pid)
        self._state = replace(state, samples=[])
        self._heard_s = time.monotonic()

    def _record_death(self) -> None:
        self._kill()
        self._call = None
        wait_s = self._back_off.wait_s(lived_s=self._heard_s - self._made_s)
        self._again_s = time.monotonic() + wait_s

    def _start_again(self) -> None:
        if self._is_ended:
            return
        self._restarts += 1
        before = None
        if self._state is not None:
            before = replace(self._state, samples=list(self._samples))
            self._state = replace(self._state, heard=len(self._samples))
        self._tuner = self._make(before)
        self._call_s = time.monotonic()
        if self._is_ended:  # from another thread, meanwhile
            self._kill()

    def _make(self, before: TunerState | None) -> TunerProcess:
        self._made_s, self._is_begun = time.monotonic(), False
        graph, tuning, turn = self._graph, InBand(self._tuning), self._restarts
        own = {"expected": self._expected, "before": before, "turn": turn}
        actor: Any = ray.remote(Tuner)

        def make(options: dict[str, Any], note: PidFile | None) -> Any:
            settings = {"num_cpus": 0, "max_restarts": 0, "max_concurrency": THREADS, **options}
            return actor.options(**settings).remote(graph, tuning, note=note, **own)

        return TunerProcess(make)


FIRST_S = 1.0
AT_MOST_S = 30.0
LIVED_S = 30.0
"""A process that lived this long did not die at its start: the next one need not wait."""


class BackOff:
    """Waits of 0, 1, 2, 4 … 30 s; reset by a 30 s life."""

    def __init__(self) -> None:
        self._deaths = 0

    def wait_s(self, *, lived_s: float) -> float:
        """Count a death; return how long to wait before the next start."""
        if lived_s >= LIVED_S:
            self._deaths = 0
        self._deaths += 1
        doublings = min(self._deaths - 2, 10)  # 2.0 ** 1,024 would overflow
        return 0.0 if doublings < 0 else min(FIRST_S * 2.0**doublings, AT_MOST_S)
