"""What each node runs: one that differs from the submitter is refused before a job starts.

Slots speak frames and pickled plans of one release to each other; rows of one NumPy or Arrow are
laid out by the other's rules. So all of a job's nodes run the same, to the last digit.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.nodes.gateway import on_node
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.runtime.errors import ClusterError

__all__ = ["check_nodes", "own_versions"]

PACKAGES = ("ray", "pyarrow", "numpy", "slackwater")
WITHIN_S = 30.0
"""A node may have to start a worker: half a second, far more on a busy machine."""


def own_versions() -> dict[str, str]:
    """Return {"python" or package: its version} of this process; "none" for what is not there."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "none"
    return found


def check_nodes(
    nodes: Iterable[NodeInfo],
    *,
    expected: Mapping[str, str] | None = None,
    within_s: float = WITHIN_S,
) -> None:
    """Check that these nodes run what this process runs. Asks all at once, with no CPU of theirs.

    Args:
        nodes: those that the job's slots go to; one may come several times.
        expected: {"python" or package: version}; None: as here.
        within_s: how long to wait for their answers.

    Raises:
        ClusterError: a node runs something else, or does not answer; names each, and both
            versions.
    """
    expected = own_versions() if expected is None else expected
    calls = {
        on_node(own_versions, node_id=n.node_id): n for n in {n.node_id: n for n in nodes}.values()
    }
    answered, silent = ray.wait(list(calls), num_returns=len(calls), timeout=within_s)
    problems = {calls[call].name: _difference(call, expected) for call in answered}
    for call in silent:
        problems[calls[call].name] = f"did not say within {within_s:g} s what it runs"
    told = [f"node {name!r} {problem}" for name, problem in sorted(problems.items()) if problem]
    if told:
        raise ClusterError(
            f"{'; '.join(told)}. All nodes of a job run what its submitter runs: install the same "
            f"there ({_requirements(expected)}, under Python {expected['python']}), in the Python "
            "that Ray was started with, and restart Ray on it; or place the stages on other nodes "
            "(placement=). `slackwater doctor` compares all nodes"
        )


def _difference(call: Any, expected: Mapping[str, str]) -> str:
    """Return what is wrong with a node's answer; nothing if it is as expected."""
    try:
        found: dict[str, str] = ray.get(call, timeout=WITHIN_S)
    except RayError as problem:
        if "No module named" in str(problem):
            return "has no slackwater, or not this version of it"
        return f"could not say what it runs: {_last_line(problem)}"
    differing = [
        f"{what} {found.get(what, 'none')} where the submitter has {version}"
        for what, version in expected.items()
        if found.get(what) != version
    ]
    return f"has {', '.join(differing)}" if differing else ""


def _requirements(expected: Mapping[str, str]) -> str:
    pinned = [f"{package}=={expected[package]}" for package in PACKAGES if package in expected]
    return f"pip install {' '.join(pinned)}"


def _last_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[-1]
