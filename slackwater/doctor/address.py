"""Checks of a running cluster: its access, and its nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slackwater.actors.nodes.versions import own_versions
from slackwater.doctor.clock import ask_clock
from slackwater.doctor.findings import (
    Finding,
    judge_clock,
    judge_host,
    judge_slots,
    ok,
    problem,
    warning,
)
from slackwater.doctor.own_token import judge_own_token
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.plurals import count_of

if TYPE_CHECKING:
    from slackwater.actors.nodes.placement import NodeInfo
    from slackwater.actors.nodes.ray_nodes import RayNodes

ANSWER_S = 60.0
CLUSTER = "cluster"


def examine_address(address: str | None, *, say: Callable[[str], None]) -> list[Finding]:
    """Return the findings about a cluster and each of its nodes.

    Args:
        address: address as for `Cluster.connect`.
        say: gets short progress messages.
    """
    from slackwater.actors.nodes.ray_nodes import RayNodes  # noqa: PLC0415 (Ray takes a second to import)

    findings = list(judge_own_token(os.environ))
    try:
        nodes = RayNodes.connect(address, progress=say)
    except ClusterError as error:
        return [*findings, problem(CLUSTER, str(error))]
    with nodes:
        if nodes.notes:
            findings += [warning(CLUSTER, note) for note in nodes.notes]
        else:
            findings.append(ok(CLUSTER, "asks for a token, and takes ours"))
        findings += [
            problem(CLUSTER, f"node {node.name} is up for Ray, but its host {node.ip} is silent")
            for node in nodes.silent
        ]
        say(f"looking at {count_of(len(nodes.nodes), 'node')}")
        return [*findings, *_examine_nodes(nodes)]


def _examine_nodes(nodes: RayNodes) -> Iterator[Finding]:
    facts = _facts(nodes.nodes)
    names = {
        node.node_id: f"{node.name} (head)" if node.is_head else node.name for node in nodes.nodes
    }
    for node in nodes.nodes:
        about, known = names[node.node_id], facts[node.node_id]
        if isinstance(known, str):
            yield problem(about, known)
            continue
        yield from judge_host(about, known, ours=own_versions(), is_running=True)
        yield judge_slots(about, node)
        try:
            best = ask_clock(lambda node=node: _clock_of(node))  # type: ignore[misc]
        except Exception as error:  # Ray has many kinds of errors
            yield problem(about, f"its clock cannot be asked: {type(error).__name__}")
            continue
        yield judge_clock(about, best.offset_ns, best.error_ns(best.t4_ns))


def _facts(nodes: Sequence[NodeInfo]) -> Mapping[str, dict[str, Any] | str]:
    """Return {node id: facts, or the error}. All nodes are asked at once."""
    import ray  # noqa: PLC0415
    from ray.exceptions import RayError  # noqa: PLC0415

    from slackwater.actors.nodes.gateway import on_node  # noqa: PLC0415
    from slackwater.actors.nodes.host_facts import host_facts  # noqa: PLC0415

    calls = {on_node(host_facts, node_id=node.node_id): node.node_id for node in nodes}
    done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=ANSWER_S)
    facts: dict[str, dict[str, Any] | str] = dict.fromkeys(
        calls.values(),
        f"did not run a small task of ours within {ANSWER_S:.0f} s: see `ray status`",
    )
    for call in done:
        try:
            facts[calls[call]] = ray.get(call)
        except RayError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            facts[calls[call]] = (
                "has no slackwater, or an old one: install it in the Python that Ray runs on"
                if "No module named" in str(error)
                else f"cannot run a small task of ours: {reason}"
            )
    return facts


def _clock_of(node: NodeInfo) -> int:
    import ray  # noqa: PLC0415

    from slackwater.actors.nodes.gateway import on_node  # noqa: PLC0415
    from slackwater.actors.nodes.host_facts import clock_ns  # noqa: PLC0415

    time_ns: int = ray.get(on_node(clock_ns, node_id=node.node_id), timeout=ANSWER_S)
    return time_ns
