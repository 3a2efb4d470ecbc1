"""Placement problem: operators' loads, nodes' capacities, and pinned operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["IntArray", "PlacementProblem"]

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """Problem of assigning operators to nodes with the least Mace_WC. Source: [mace] §IX-B.

    Attributes:
        load_s: shape (m, d), CPU seconds of each operator in each subinterval, >= 0.
        capacity: shape (n,), C_i: CPU seconds of work that a node does in a second, > 0.
        width_s: w, length of a subinterval, > 0.
        pinned: {operator: node} of operators that must stay.
        near: (from, to) operators of which one feeds the other. Among placements with equal
            Mace_WC, one with fewer of these pairs on two nodes is better.

    Raises:
        SettingError: a value is out of its range.
    """

    load_s: FloatArray
    capacity: FloatArray
    width_s: float
    pinned: Mapping[int, int] = field(default_factory=dict)
    near: Sequence[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        load, speed = self.load_s, self.capacity
        if load.ndim != 2 or not load.shape[1] or not np.isfinite(load).all() or (load < 0).any():
            raise SettingError(
                f"load_s of shape {load.shape}: give finite CPU seconds >= 0 for each operator and "
                "each of at least one subinterval"
            )
        if speed.ndim != 1 or not len(speed):
            raise SettingError("there is no node to place operators on; give one capacity at least")
        if not (np.isfinite(speed).all() and (speed > 0).all()):
            slow = int(np.argmin(np.where(np.isfinite(speed), speed, -1.0)))
            raise SettingError(
                f"node {slow} has a capacity of {speed[slow]}; it must be finite and above 0, or "
                "omit the node"
            )
        if not 0 < self.width_s < np.inf:
            raise SettingError(
                f"width_s={self.width_s} must be above 0: it is how long a subinterval is"
            )
        for operator, node in self.pinned.items():
            if not 0 <= operator < len(load) or not 0 <= node < len(speed):
                raise SettingError(
                    f"operator {operator} is pinned to node {node}, but there are operators 0 to "
                    f"{len(load) - 1} and nodes 0 to {len(speed) - 1}"
                )
        for feeder, reader in self.near:
            if not (0 <= feeder < len(load) and 0 <= reader < len(load)):
                raise SettingError(
                    f"near names operators {feeder} and {reader}; there are 0 to {len(load) - 1}"
                )

    @property
    def operators(self) -> int:
        """Number of operators, m."""
        return int(self.load_s.shape[0])

    @property
    def nodes(self) -> int:
        """Number of nodes, n."""
        return len(self.capacity)

    @cached_property
    def done_s(self) -> FloatArray:
        """Work of each operator until the end of each subinterval, shape (m, d)."""
        return np.cumsum(self.load_s, axis=1)

    @cached_property
    def room_s(self) -> FloatArray:
        """Work that each node can do until the end of each subinterval, shape (n, d)."""
        ends = np.arange(1, self.load_s.shape[1] + 1, dtype=np.float64) * self.width_s
        return np.asarray(self.capacity[:, None] * ends)

    @cached_property
    def movable(self) -> npt.NDArray[np.bool_]:
        """Mask of the operators that have a load and are not pinned, shape (m,)."""
        free = np.asarray(self.load_s.any(axis=1), dtype=np.bool_)
        free[list(self.pinned)] = False
        return free

    def random(self, rng: np.random.Generator) -> IntArray:
        """Return a uniformly random placement with pinned operators in place, shape (m,)."""
        nodes = rng.integers(0, self.nodes, self.operators).astype(np.intp)
        return self.keep_pinned(nodes)

    def keep_pinned(self, nodes: IntArray) -> IntArray:
        """Put pinned operators on their nodes, in place; return the same placement."""
        if self.pinned:
            nodes[list(self.pinned)] = list(self.pinned.values())
        return nodes
