"""The Ray actors of a job's slots, as a whole: made, asked, and ended, each within a time limit.

Calls to an actor go to its process directly. So with the head's gcs_server dead, slots on nodes
that live can still be stopped in order: their sinks are closed, and their last reports come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.jobs.end_on_record import end_on_record
from slackwater.actors.jobs.picklable import check_picklable
from slackwater.actors.jobs.ray_errors import unwrapped_ray_error
from slackwater.actors.nodes.cluster_monitor import ClusterMonitor
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.nodes.time_limits import attempt
from slackwater.actors.slot.actor import SlotActor
from slackwater.actors.slot.report import SlotIdentity, SlotReport
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slot_plan import slot_plan

__all__ = ["ask_all", "end_actors", "final_reports", "make_actors", "set_clocks"]

KILL_S = 3.0
STOP_S = 4.0


def make_actors(
    plan: Plan, nodes: Mapping[str, NodeInfo], *, shifts: Mapping[str, Any], **settings: Any
) -> dict[str, Any]:
    """Return {slot: its actor}, each on its node; they are made as they can be.

    Args:
        plan: every stage in a slot.
        nodes: {slot: the node it runs on}, of those to be made.
        shifts: for tests, {node: what its slots take its clock to be}.
        settings: of every slot, beside those that travel in the plan.

    Raises:
        FlowError: something in the plan does not pickle.
    """
    actor: Any = ray.remote(SlotActor)
    try:
        return {
            name: actor.options(
                num_cpus=1,
                max_restarts=0,
                max_concurrency=8,  # of which `join`, `news` and `said` wait, one call each
                scheduling_strategy=NodeAffinitySchedulingStrategy(nodes[name].node_id, soft=False),
            ).remote(
                slot_plan(plan, name),
                host=nodes[name].ip,
                clock_shift=shifts.get(nodes[name].name, 0),
                end_on_record=end_on_record,
                **settings,
            )
            for name in nodes
        }
    except Exception:
        check_picklable(plan)
        raise


def ask_all(
    actors: Collection[Any],
    method: str,
    *args: Any,
    flow: str,
    cluster_monitor: ClusterMonitor,
    timeout_s: float,
) -> list[Any]:
    """Return what each of these says, in their order.

    Raises:
        ClusterError: not all of them answered in time, or the cluster is gone.
        SlackwaterError: what one of them raised.
    """
    calls = [actor.call.remote(method, *args) for actor in actors]
    try:
        return cluster_monitor.get(calls, timeout_s)
    except GetTimeoutError as problem:
        raise ClusterError(
            f"job {flow!r}: not all of its {len(calls)} slots answered {method!r} "
            f"within {timeout_s:.0f} s; the nodes may be short of free CPUs (one per slot) "
            "or of memory: see `ray status`"
        ) from problem
    except RayError as problem:
        raise unwrapped_ray_error(problem) from problem


def set_clocks(
    known: Mapping[str, SlotIdentity],
    ask: Callable[..., list[Any]],
    *,
    only: Collection[str] | None = None,
) -> None:
    """Give all slots one clock, the first slot's: those of another host follow it.

    Args:
        known: {slot: who it is}, the first slot first.
        ask: calls a method of slots, as `ask(method, *args, slots=names)`, and returns the answers.
        only: those to be given it; None: all but the first.
    """
    first, *others_too = known
    rest = [name for name in others_too if only is None or name in only]
    here = known[first].clock
    same = [name for name in rest if here is not None and known[name].clock == here]
    others = [name for name in rest if name not in same]
    if same:
        ask("keep_clock", known[first].ahead_ns, slots=same)
    if others:
        (endpoint,) = ask("serve_clock", slots=[first])
        ask("follow_clock", endpoint, slots=others)


def final_reports(
    actors: Mapping[str, Any],
    *,
    failure: str,
    within_s: float,
    then: Callable[[Collection[str]], object],
) -> dict[str, SlotReport]:
    """Stop slots; return the reports of those that ended in time, {slot: its report}.

    Args:
        actors: {slot: its actor} of those that live.
        failure: why: sinks keep what is published.
        within_s: for all of it.
        then: is called with those that have ended, if there is time left: to fetch what they have.
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


def end_actors(actors: Mapping[str, Any], *, stopped: str | None = None) -> None:
    """Let actors and their CPUs go, if there is still somebody to do it.

    Args:
        actors: {slot: its actor}.
        stopped: stop the slots before, for this reason: they may have files in the temp folder,
            and locks. None: kill them.
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
