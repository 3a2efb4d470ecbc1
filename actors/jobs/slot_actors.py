"""Make, ask and end the Ray actors of a job's slots, within time limits.

Calls to an actor go to its process directly. So with the head's gcs_server dead, slots on living
nodes can still be stopped in order: their sinks are closed, and their last reports arrive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.jobs.deaths import death_in_start
from slackwater.actors.jobs.end_on_record import end_on_record
from slackwater.actors.jobs.named_actors import (
    NAMESPACE,
    has_no_coordinator,
    process_name,
    processes_of,
)
from slackwater.actors.jobs.picklable import check_picklable
from slackwater.actors.jobs.ray_errors import take_errors, unwrapped_ray_error
from slackwater.actors.nodes.cluster_monitor import ClusterMonitor
from slackwater.actors.nodes.host_monitor import HostMonitor
from slackwater.actors.nodes.in_band import InBand
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.nodes.time_limits import attempt
from slackwater.actors.slot.actor import SlotActor, WarmProcess
from slackwater.actors.slot.report import SlotIdentity, SlotReport
from slackwater.runtime.errors import ClusterError, WorkerDied
from slackwater.runtime.life import HomeNode
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slot_plan import slot_plan

__all__ = [
    "JobClock",
    "NotInTime",
    "answering",
    "answers_to",
    "ask_each",
    "begin_again",
    "end_actors",
    "final_reports",
    "living_processes",
    "make_actors",
    "set_clocks",
]

_K = TypeVar("_K")
KILL_S = 3.0
STOP_S = 4.0
ANSWER_S = 2.0
"""Time for a process to answer, of slots whose start has failed; one that loads takes a second."""


class NotInTime(ClusterError):
    """Slots have not answered within their limit; a job with checkpoints tries again."""


def make_actors(
    plan: Plan,
    nodes: Mapping[str, NodeInfo],
    *,
    shifts: Mapping[str, Any],
    cpus: int = 1,
    lives_on: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return {slot: its actor}, each on its node; Ray makes them when it can.

    Args:
        plan: every stage in a slot.
        nodes: {slot: its node}, of the slots to be made.
        shifts: shifts for tests, {node: `shift` of its slots' `SlotClock`}.
        cpus: CPUs that each holds.
        lives_on: id of a job whose processes do not end with this one; None if they do.
        settings: settings of every slot, besides those in the plan.

    Raises:
        FlowError: a part of the plan does not pickle.
    """
    actor: Any = ray.remote(SlotActor)
    try:
        return {
            name: actor.options(
                num_cpus=cpus,
                max_restarts=0,
                max_concurrency=8,  # `join`, `news`, `said` and `watch` wait, one call each
                scheduling_strategy=NodeAffinitySchedulingStrategy(nodes[name].node_id, soft=False),
                **_life(lives_on),
            ).remote(
                InBand(slot_plan(plan, name)),
                is_over=None if lives_on is None else partial(has_no_coordinator, lives_on),
                **_settings(nodes[name], shifts, settings),
            )
            for name in nodes
        }
    except Exception:
        check_picklable(plan)
        raise


def _life(lives_on: str | None) -> dict[str, str]:
    """Return the options of an actor for how long it lives, and its name."""
    if lives_on is None:
        return {}
    return {"name": process_name(lives_on), "namespace": NAMESPACE, "lifetime": "detached"}


def living_processes(job_id: str) -> list[tuple[Any, WarmProcess]]:
    """Return the processes of a job that answer, and end the others.

    Raises:
        ClusterError: the cluster's head does not answer.
    """
    actors = dict(enumerate(processes_of(job_id)))
    calls = {at: actor.place.remote() for at, actor in actors.items()}
    living = _answering(actors, calls)
    return [(actor, ray.get(calls[at], timeout=0)) for at, actor in living.items()]


def begin_again(
    plan: Plan,
    nodes: Mapping[str, NodeInfo],
    actors: Mapping[str, Any],
    *,
    shifts: Mapping[str, Any],
    **settings: Any,
) -> dict[str, Any]:
    """Let living actors begin with new slots, {slot: its actor}; arguments as `make_actors`.

    Returns:
        {slot: the call}, to be waited for: another call might reach the old slot.
    """
    return {
        name: actor.again.remote(
            InBand(slot_plan(plan, name)), **_settings(nodes[name], shifts, settings)
        )
        for name, actor in actors.items()
    }


def answering(actors: Mapping[str, Any], *, lost: Collection[str] = ()) -> dict[str, Any]:
    """Return the actors whose processes answer, {slot: its actor}, and end the others.

    Args:
        actors: {slot: its Ray actor}.
        lost: slots on lost hosts, which are not asked: their answers would be waited for.
    """
    calls = {s: actor.call.remote("identify") for s, actor in actors.items() if s not in lost}
    return _answering(actors, calls)


def _answering(actors: Mapping[_K, Any], calls: Mapping[_K, Any]) -> dict[_K, Any]:
    """Return the actors whose calls are answered in time, and end the others."""
    if calls:
        ray.wait(list(calls.values()), num_returns=len(calls), timeout=ANSWER_S)
    living = {slot: actors[slot] for slot, call in calls.items() if _has_answered(call)}
    end_actors({slot: actor for slot, actor in actors.items() if slot not in living})
    return living


def _has_answered(call: Any) -> bool:
    try:
        ray.get(call, timeout=0)
    except (RayError, OSError):
        return False
    return True


def _settings(
    node: NodeInfo, shifts: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    shift = shifts.get(node.name, 0)
    return {"host": node.ip, "clock_shift": shift, "end_on_record": end_on_record, **settings}


def ask_each(
    actors: Mapping[str, Any],
    method: str,
    arguments: Mapping[str, tuple[Any, ...]],
    *,
    plan: Plan,
    homes: Mapping[str, HomeNode],
    cluster_monitor: ClusterMonitor,
    timeout_s: float,
    hosts: HostMonitor | None = None,
) -> list[Any]:
    """Return the answers of these actors, {slot: its actor}, in their order.

    Args:
        actors: actors of the slots to be asked.
        method: name of the slot's method.
        arguments: arguments of the method, by slot.
        plan: stages and slots of the job.
        homes: node of each slot, by the slot's name.
        cluster_monitor: monitor of the cluster, one for this process.
        timeout_s: time limit for all answers.
        hosts: hosts of the slots, looked at meanwhile; None to wait for a lost host, too.

    Raises:
        NotInTime: not all answered in time.
        ClusterError: the cluster is lost.
        WorkerDied: a slot's process has ended, or its host is lost.
        SlackwaterError: an actor raised it.
    """
    calls = {slot: own.call.remote(method, *arguments[slot]) for slot, own in actors.items()}
    return answers_to(
        calls,
        method,
        plan=plan,
        homes=homes,
        cluster_monitor=cluster_monitor,
        timeout_s=timeout_s,
        hosts=hosts,
    )


def answers_to(
    calls: Mapping[str, Any],
    method: str,
    *,
    plan: Plan,
    homes: Mapping[str, HomeNode],
    cluster_monitor: ClusterMonitor,
    timeout_s: float,
    hosts: HostMonitor | None = None,
) -> list[Any]:
    """Return the answers to calls of slots, {slot: call}; see `ask_each`."""
    try:
        return cluster_monitor.get(list(calls.values()), timeout_s, hosts)
    except GetTimeoutError as problem:
        take_errors(calls.values())
        raise NotInTime(
            f"job {plan.flow!r}: not all of its {len(calls)} slots answered {method!r} "
            f"within {timeout_s:.0f} s; the nodes may be short of free CPUs (one per slot) "
            "or of memory: see `ray status`"
        ) from problem
    except RayError as problem:
        take_errors(calls.values())
        for slot, call in calls.items():
            if (died := _death_by(call, slot, plan, homes)) is not None:
                raise died from problem
        raise unwrapped_ray_error(problem) from problem


def _death_by(call: Any, slot: str, plan: Plan, homes: Mapping[str, HomeNode]) -> WorkerDied | None:
    """Return the error of a slot that has died; None if it has not."""
    try:
        ray.get(call, timeout=0)
    except RayError as problem:
        return death_in_start(problem, slot, plan, homes)
    return None


class JobClock(NamedTuple):
    """Clock of a job: that of its first slot.

    Attributes:
        identity: identity of the steady clock of its host; None if not known.
        ahead_ns: difference of the job from that clock, in ns.
    """

    identity: str | None
    ahead_ns: int


def set_clocks(
    known: Mapping[str, SlotIdentity],
    ask: Callable[..., list[Any]],
    *,
    only: Collection[str] | None = None,
    before: JobClock | None = None,
) -> JobClock:
    """Give all slots the first slot's clock; slots of another host follow it.

    Args:
        known: {slot: its identity}, the first slot first.
        ask: calls a method of slots, as `ask(method, *args, slots=names)`, and returns the answers.
        only: slots to be set; all but the first if None.
        before: clock of an earlier attempt, which goes on if the first slot's host has it; None in
            the first attempt.

    Returns:
        The clock of this attempt.
    """
    first, *following = known
    ahead_ns = known[first].ahead_ns
    if before is not None and before.identity is not None and before.identity == known[first].clock:
        ahead_ns = before.ahead_ns  # it goes on as if nothing had been
        ask("keep_clock", ahead_ns, slots=[first])
    rest = [name for name in following if only is None or name in only]
    here = known[first].clock
    same = [name for name in rest if here is not None and known[name].clock == here]
    others = [name for name in rest if name not in same]
    if same:
        ask("keep_clock", ahead_ns, slots=same)
    if others:
        (endpoint,) = ask("serve_clock", slots=[first])
        ask("follow_clock", endpoint, slots=others)
    return JobClock(known[first].clock, ahead_ns)


def final_reports(
    actors: Mapping[str, Any],
    *,
    failure: str,
    within_s: float,
    then: Callable[[Collection[str]], object],
) -> dict[str, SlotReport]:
    """Stop slots; return the reports of those that ended in time, {slot: its report}.

    Args:
        actors: {slot: its actor} of living slots.
        failure: reason why the job fails: sinks keep their published parts.
        within_s: time limit for all of this.
        then: called with the ended slots, if time is left, to fetch their rows.
    """
    heard: dict[str, SlotReport] = {}
    until_s = time.monotonic() + within_s

    def ask() -> None:
        for actor in actors.values():
            actor.call.remote("stop", failure)
        calls = {name: actor.call.remote("join") for name, actor in actors.items()}
        for name, call in calls.items():
            try:
                heard[name] = ray.get(call, timeout=max(until_s - time.monotonic(), 0))
            except (RayError, OSError):
                continue
        then(list(heard))

    attempt(within_s, ask)
    return dict(heard)


def end_actors(actors: Mapping[Any, Any], *, stopped: str | None = None) -> None:
    """End actors and free their CPUs, as far as the cluster still answers.

    Args:
        actors: {slot: its Ray actor}.
        stopped: stop the slots first, for this reason: they may have files in the temp folder,
            and locks. None if they are to be killed.
    """

    def stop() -> None:
        stops = [actor.call.remote("stop", stopped) for actor in actors.values()]
        ray.wait(stops, num_returns=len(stops), timeout=STOP_S / 2)

    def kill() -> None:
        for actor in actors.values():
            ray.kill(actor, no_restart=True)

    try:
        if stopped is not None:
            attempt(STOP_S, stop)
    finally:
        attempt(KILL_S, kill)
