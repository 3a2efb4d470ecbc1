"""Refuse nodes that run other versions than the submitter, before a job starts.

Slots exchange frames and pickled plans of one release; NumPy and Arrow lay rows out by the rules of
their versions. So all of a job's nodes run the same versions, to the last digit.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.nodes.gateway import on_node
from slackwater.actors.nodes.host_facts import PACKAGES
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.runtime.errors import ClusterError

__all__ = ["check_nodes", "own_versions"]

WITHIN_S = 30.0
"""A node may have to start a worker: half a second, far more on a busy machine."""


def own_versions() -> dict[str, str]:
    """Return {"python" or package: its version} of this process; "none" if not installed."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "none"
    return versions


def check_nodes(
    nodes: Iterable[NodeInfo],
    *,
    expected: Mapping[str, str] | None = None,
    within_s: float = WITHIN_S,
) -> None:
    """Check that nodes run this process's versions. Asks all at once, and needs no CPU.

    Args:
        nodes: nodes of the job's slots; may repeat.
        expected: {"python" or package: version}; those here if None.
        within_s: how long to wait for the answers.

    Raises:
        ClusterError: a node runs another version, or does not answer; names each node and both
            versions.
    """
    expected = own_versions() if expected is None else expected
    calls = {
        on_node(own_versions, node_id=n.node_id): n for n in {n.node_id: n for n in nodes}.values()
    }
    answered, silent = ray.wait(list(calls), num_returns=len(calls), timeout=within_s)
    problems = {calls[call].name: _difference(call, expected) for call in answered}
    for call in silent:
        problems[calls[call].name] = f"did not name its versions within {within_s:g} s"
    faults = [f"node {name!r} {problem}" for name, problem in sorted(problems.items()) if problem]
    if faults:
        raise ClusterError(
            f"{'; '.join(faults)}. All nodes of a job run its submitter's versions: install them "
            f"there ({_requirements(expected)}, under Python {expected['python']}), in the Python "
            "that Ray was started with, and restart Ray on it; or place the stages on other nodes "
            "(placement=). `slackwater doctor` compares all nodes"
        )


def _difference(call: Any, expected: Mapping[str, str]) -> str:
    """Return the problem with a node's answer; empty if it is as expected."""
    try:
        versions: dict[str, str] = ray.get(call, timeout=WITHIN_S)
    except RayError as problem:
        if "No module named" in str(problem):
            return "has no slackwater, or not this version of it"
        return f"could not name its versions: {_last_line(problem)}"
    differing = [
        f"{what} {versions.get(what, 'none')} where the submitter has {version}"
        for what, version in expected.items()
        if versions.get(what) != version
    ]
    return f"has {', '.join(differing)}" if differing else ""


def _requirements(expected: Mapping[str, str]) -> str:
    pinned = [f"{package}=={expected[package]}" for package in PACKAGES if package in expected]
    return f"pip install {' '.join(pinned)}"


def _last_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[-1]
