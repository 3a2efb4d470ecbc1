"""Mace_WC after a move: only two nodes change, so only their excess is computed.

The excess of a node is the largest rise of (arrived work − work that it can have done) over any
stretch of time. Both are running sums, so one more operator is one addition of kept sums:

```
ahead   of the node, of the operator    1 4 3 5     0 2 2 3
their sum, its rise above its least     1 6 5 8     8 − 0
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.excess import cumulative_excess, mace, node_load
from slackwater.runtime.foresight.placement.problem import IntArray, PlacementProblem
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["Placed", "largest_rise", "worst_mace_s"]

_KNOTS = 32
_FEW = 1_000  # pairs; below, whole arrays at once are quicker than a loop over subintervals


def worst_mace_s(problem: PlacementProblem, nodes: IntArray) -> float:
    """Return Mace_WC of a placement from scratch, in seconds. Source: [mace] Def. 9."""
    load = node_load(problem.load_s, nodes.tolist(), problem.nodes)
    excess = cumulative_excess(load, problem.capacity, width_s=problem.width_s)
    return float(mace(excess, problem.capacity).max())


def largest_rise(base: FloatArray, more: FloatArray) -> FloatArray:
    """Return the largest rise over time of each sum of a base and another series.

    Args:
        base: shape (t, d), running sums that begin at 0 before the first.
        more: shape (k, d), running sums of the same kind.

    Returns:
        Shape (k, t), >= 0: the maximum over p of s_p − min(0, s_1 … s_p), s = more + base.
    """
    shape = (len(more), len(base))
    if shape[0] * shape[1] < _FEW:
        return _rise(more[:, None] + base[None])
    # One time after the other, all pairs stay in the cache; all times together would not.
    least, most, total = np.zeros(shape), np.zeros(shape), np.empty(shape)
    rows, columns = np.ascontiguousarray(base.T), np.ascontiguousarray(more.T)[:, :, None]
    for row, column in zip(rows, columns, strict=True):
        np.add(row, column, out=total)
        np.minimum(least, total, out=least)
        np.subtract(total, least, out=total)
        np.maximum(most, total, out=most)
    return most


def _rise(ahead_s: FloatArray) -> FloatArray:
    """Return the largest rise of each series, shape (…, d) to (…)."""
    least = np.minimum.accumulate(ahead_s, axis=-1)
    np.minimum(least, 0.0, out=least)
    return np.asarray(np.subtract(ahead_s, least, out=least).max(axis=-1))


class Placed:
    """Placement, and the worst excess of its nodes after a move.

    Attributes:
        nodes: shape (m,), the node of each operator.
        worst_s: shape (n,), the largest excess of each node, in seconds of its own time.
        evaluated: moves whose outcome was computed exactly, so far.
        bounded: moves that a lower bound of their outcome has ruled out, so far.
        knots: the points of time that lower bounds use, at most `most_knots`.
    """

    def __init__(
        self, problem: PlacementProblem, nodes: IntArray, *, most_knots: int = _KNOTS
    ) -> None:
        self.problem = problem
        self.nodes = np.array(nodes, dtype=np.intp)
        self.evaluated = 0
        self.bounded = 0
        if self.nodes.shape != (problem.operators,) or (
            problem.operators and not -1 <= self.nodes.min() <= self.nodes.max() < problem.nodes
        ):
            raise SettingError(
                f"a placement must name a node of 0 to {problem.nodes - 1} for each of "
                f"{problem.operators} operators, or -1 for one that is still to be placed"
            )
        # (n, d): work that reached each node, less the work that it can have done.
        self._ahead_s = -problem.room_s
        for node, done_s in zip(self.nodes, problem.done_s, strict=True):
            if node >= 0:
                self._ahead_s[node] += done_s
        self.worst_s = _rise(self._ahead_s) / problem.capacity
        self._most_knots = most_knots
        self.knots = self.most_frequent_ends(most_knots)

    @property
    def mace_s(self) -> float:
        """Mace_WC of this placement."""
        return float(self.worst_s.max())

    @property
    def as_one_s(self) -> float:
        """Worst excess of all nodes as one: no placement can be below it."""
        return float(_rise(self._ahead_s.sum(axis=0)) / self.problem.capacity.sum())

    def on(self, node: int) -> IntArray:
        """Return the operators of a node that may be moved."""
        return np.flatnonzero((self.nodes == node) & self.problem.movable)

    def worst_with(self, operators: IntArray, targets: IntArray) -> FloatArray:
        """Return each target's worst excess with each operator added, shape (k, t), s.

        An operator that is on the target already would count twice.
        """
        self.evaluated += len(operators) * len(targets)
        rise = largest_rise(self._ahead_s[targets], self.problem.done_s[operators])
        return np.asarray(rise / self.problem.capacity[targets])

    def worst_with_pairs(self, operators: IntArray, targets: IntArray) -> FloatArray:
        """Return the worst excess of targets[i] with operators[i] added, shape (k,), s."""
        self.evaluated += len(operators)
        total = self._ahead_s[targets] + self.problem.done_s[operators]
        return _rise(total) / self.problem.capacity[targets]

    def at_least_with(self, operators: IntArray, targets: IntArray) -> FloatArray:
        """Return lower bounds of `worst_with`, by the knots of time, shape (k, t).

        The largest rise between some points of time is at most that between all of them.
        """
        base = self._ahead_s[np.ix_(targets, self.knots)]
        more = self.problem.done_s[np.ix_(operators, self.knots)]
        return np.asarray(largest_rise(base, more) / self.problem.capacity[targets])

    def worst_without(self, operators: IntArray) -> FloatArray:
        """Return the worst excess of each operator's node without it, shape (k,), s."""
        places = self.nodes[operators]
        left = self._ahead_s[places] - self.problem.done_s[operators]
        return _rise(left) / self.problem.capacity[places]

    def worst_of_swaps(self, operators: IntArray, partners: IntArray) -> FloatArray:
        """Return the worse of both nodes if operators[i] and partners[i] are exchanged.

        Args:
            operators: shape (k,), numbers of operators.
            partners: shape (k,), each on another node than its operator.
        """
        self.evaluated += len(operators)
        here, there = self.nodes[operators], self.nodes[partners]
        more = self.problem.done_s[operators] - self.problem.done_s[partners]
        speed = self.problem.capacity
        left = _rise(self._ahead_s[here] - more) / speed[here]
        return np.maximum(left, _rise(self._ahead_s[there] + more) / speed[there])

    def at_least_of_swaps(self, operators: IntArray, partners: IntArray) -> FloatArray:
        """Return lower bounds for operators of one node with all partners, shape (k, t)."""
        here, there = int(self.nodes[operators[0]]), self.nodes[partners]
        done = self.problem.done_s
        mine, theirs = done[np.ix_(operators, self.knots)], done[np.ix_(partners, self.knots)]
        left = largest_rise(theirs, self._ahead_s[here, self.knots] - mine)
        right = largest_rise(self._ahead_s[np.ix_(there, self.knots)] - theirs, mine)
        speed = self.problem.capacity
        return np.asarray(np.maximum(left / speed[here], right / speed[there]))

    def move(self, operator: int, target: int) -> None:
        """Move or place an operator, and recompute the worst excess of both nodes."""
        source = int(self.nodes[operator])
        if source == target:
            return
        self._ahead_s[target] += self.problem.done_s[operator]
        changed = [target]
        if source >= 0:
            self._ahead_s[source] -= self.problem.done_s[operator]
            changed.append(source)
        self.nodes[operator] = target
        worst = _rise(self._ahead_s[changed])
        self.worst_s[changed] = worst / self.problem.capacity[changed]

    def look_again(self) -> None:
        """Choose new knots, since moves have changed the worst stretches of nodes."""
        self.knots = self.most_frequent_ends(self._most_knots)

    def most_frequent_ends(self, most: int) -> IntArray:
        """Return the most frequent ends of the nodes' worst stretches, ascending."""
        begins, ends = self._worst_stretches()
        steps = self._ahead_s.shape[1]
        count = np.bincount(np.concatenate([begins[begins >= 0], ends]), minlength=steps)
        count[:: max(steps // 16, 1)] += 1  # and a few of each part of time
        ends = np.argsort(-count, kind="stable")[:most]
        return np.sort(ends[count[ends] > 0])

    def worst_stretches(self, most: int) -> tuple[IntArray, IntArray]:
        """Return the nodes' worst stretches, and all time; the most frequent first.

        Returns:
            Two arrays of shape (k,), k at most `most`: the subinterval before each stretch, -1 for
            the start of time, and its last subinterval.
        """
        every = np.stack(self._worst_stretches())
        every = every[:, every[0] < every[1]]  # a node without excess has no worst stretch
        all_time = np.array([[-1], [self._ahead_s.shape[1] - 1]])
        stretches, count = np.unique(np.hstack([all_time, every]), axis=1, return_counts=True)
        begins, ends = stretches[:, np.argsort(-count, kind="stable")[:most]]
        return begins, ends

    def _worst_stretches(self) -> tuple[IntArray, IntArray]:
        ahead = self._ahead_s
        least = np.minimum(np.minimum.accumulate(ahead, axis=1), 0.0)
        ends = np.argmax(ahead - least, axis=1)
        lowest = least[np.arange(len(ends)), ends]
        begins = (ahead <= lowest[:, None]).argmax(axis=1)
        return np.where(lowest < 0, begins, -1), ends
