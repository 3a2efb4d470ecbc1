"""The hosts of a flow, each as a way to run it: virtual time, slots in real time, and Ray."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

import slackwater as sw
from slackwater.actors.sinks.run_fingerprints import sink_runs
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.slot.report import SlotReport, put_together
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.flow_fingerprints import flow_fingerprints
from slackwater.runtime.plan.plan import Plan, collect_sinks, plan_stages
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.simulate import UserStops
from tests.support.waiting import until

WITHIN_S = 30.0
NODES = ("node-1", "node-2")


@dataclass
class Outcome:
    """How a flow ended.

    Attributes:
        report: of the job.
        error: what it failed with, in words; None: it did not.
        tables: {collect sink: what it has}.
        plan: of `Slots`, and {slot: its log}, if they keep any.
    """

    report: sw.JobReport
    error: str | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict)
    plan: Plan | None = None
    logs: dict[str, dict[str, Any]] = field(default_factory=dict)


class Host(Protocol):
    """One way to run a flow."""

    def run(
        self,
        flow: sw.Dataflow,
        *,
        stop_when: Callable[[], bool] | None = None,
        placement: dict[str, str] | None = None,
    ) -> Outcome:
        """Run a flow to its end; or stop it when something is true, or virtual time has passed."""
        ...


class Virtual:
    """The simulator."""

    def run(
        self,
        flow: sw.Dataflow,
        *,
        stop_when: Callable[[], bool] | None = None,
        placement: dict[str, str] | None = None,
    ) -> Outcome:
        faults = [] if stop_when is None else [UserStops(at_ns=2_000_000_000)]
        job = sw.Simulation(nodes=len(NODES)).submit(flow, placement=placement, faults=faults)
        return _outcome(job)


class OnRay:
    """A cluster of local nodes."""

    def __init__(self, cluster: sw.Cluster) -> None:
        self._cluster = cluster

    def run(
        self,
        flow: sw.Dataflow,
        *,
        stop_when: Callable[[], bool] | None = None,
        placement: dict[str, str] | None = None,
    ) -> Outcome:
        job = self._cluster.submit(flow, placement=placement)
        if stop_when is not None:
            until(stop_when, within_s=WITHIN_S, what="what the stop waits for")
            job.stop()
        return _outcome(job)


def _outcome(job: Any) -> Outcome:
    try:
        report = job.wait(timeout=WITHIN_S)
    except SlackwaterError as problem:
        return Outcome(job.report(), str(problem))
    sinks = collect_sinks(job.plan)
    return Outcome(report, None, {sink: job.result(sink) for sink in sinks})


class Slots:
    """Real time without Ray: each slot's loop in a thread of this process, and real channels."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    def run(
        self,
        flow: sw.Dataflow,
        *,
        stop_when: Callable[[], bool] | None = None,
        placement: dict[str, str] | None = None,
    ) -> Outcome:
        plan = place(
            flow.name,
            plan_stages(flow.graph),
            list(NODES),
            placement=placement,
            deadline_ns=flow.deadline_ns,
        )
        plan = replace(plan, fingerprints=flow_fingerprints(flow.steps), limits=self._limits)
        keys = ChannelKeys.generate()
        slots = [SlotHost(slot_plan(plan, name), keys=keys) for name in plan.slot_names]
        try:
            ends = _ends(slots, plan, stop_when)
            failed = [end for end in ends if end.error is not None]
            states = {end.state for end in ends}
            state = "failed" if failed else "done" if states == {"done"} else "stopped"
            report = put_together(
                plan,
                ends,
                state=state,
                elapsed_s=0.0,
                error=None if not failed else SlackwaterError(failed[0].error),
                notes=[],
                tuning=None,
            )
            report.slot_events = failed[0].recent if failed else []
            sinks = {
                one: slots[plan.slot_names.index(plan.slots[one])] for one in collect_sinks(plan)
            }
            tables = {
                one: pa.ipc.open_stream(slot.collected(one)).read_all()
                for one, slot in sinks.items()
            }
            logs = {slot.log()["slot"]: slot.log() for slot in slots if self._limits.log}
            return Outcome(report, report.error, tables, plan, logs)
        finally:
            release(slots)


def _ends(
    slots: Sequence[SlotHost], plan: Plan, stop_when: Callable[[], bool] | None
) -> list[SlotReport]:
    """Start the slots; stop the others behind one that fails; return how each ended."""
    endpoints: dict[str, str] = {}
    for slot in slots:
        endpoints |= slot.bind(dict.fromkeys(plan.slots))
    runs = sink_runs(plan, f"{plan.flow}-1", [slot.fingerprints() for slot in slots])
    start_ns = max(slot.connect(endpoints, runs) for slot in slots)
    for slot in slots:
        slot.start(start_ns)
    if stop_when is not None:
        until(stop_when, within_s=WITHIN_S, what="what the stop waits for")
        for slot in slots:
            slot.stop()
    with ThreadPoolExecutor(len(slots)) as pool:
        waiting = {pool.submit(slot.join) for slot in slots}
        ends: list[SlotReport] = []
        while waiting:
            done, waiting = wait(waiting, WITHIN_S, FIRST_COMPLETED)
            assert done, "a slot does not end"
            ends += [one.result() for one in done]
            failure = next((end.error for end in ends if end.error is not None), None)
            if failure is not None:
                for slot in slots:
                    slot.stop(failure)
    return ends


def release(slots: Sequence[SlotHost]) -> None:
    """Leave nothing of slots open: no socket, no thread of theirs."""
    for slot in slots:
        slot.stop()
        for end in (*slot._receivers.values(), *slot._senders.values()):
            end.close(linger_s=0)
        slot._waker.close()
        slot._context.term()
    gc.unfreeze()  # a slot freezes what there is in its process
