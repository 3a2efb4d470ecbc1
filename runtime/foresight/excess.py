"""Node load, cumulative excess and Mace. Source: [mace] Def. 6, 8, 9.

```
width 2, capacity 1     load     3  6  0  …     of the node, by stimulus time
                        excess   1  5  3  …     max(0, excess before + load − capacity · width)
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["cumulative_excess", "mace", "node_load"]


def node_load(load_s: FloatArray, nodes: FloatArray | list[int], count: int) -> FloatArray:
    """Return L_i, the load of each node. Source: [mace] Def. 6.

    Args:
        load_s: shape (m, d), CPU seconds of each operator.
        nodes: shape (m,), number of each operator's node.
        count: n, the number of nodes.

    Returns:
        Shape (n, d).
    """
    places = np.asarray(nodes, dtype=np.intp)
    if places.shape != (len(load_s),) or (places < 0).any() or (places >= count).any():
        raise SettingError(
            f"a placement must name a node of 0 to {count - 1} for each of {len(load_s)} operators"
        )
    total = np.zeros((count, load_s.shape[1]))
    for node, load in zip(places, load_s, strict=True):  # a sixth of the time of np.add.at
        total[node] += load
    return total


def cumulative_excess(
    load_s: FloatArray, capacity: FloatArray | float, *, width_s: float
) -> FloatArray:
    """Return CE_i: the backlog of each node at the end of each subinterval.

    It is the running sum of load less capacity, less its least value so far: equal to the paper's
    recurrence, in one pass over arrays.

    Args:
        load_s: shape (…, d), CPU seconds.
        capacity: shape (…) or one number, C_i: CPU seconds of work done in a second, > 0.
        width_s: w, length of a subinterval.

    Returns:
        Shape (…, d), CPU seconds, >= 0. Source: [mace] Def. 8.
    """
    speed = np.asarray(capacity, dtype=np.float64)
    if not (speed > 0).all():
        raise SettingError(f"a node's capacity must be above 0, not {capacity}")
    ahead = np.cumsum(load_s - speed[..., None] * width_s, axis=-1)
    least = np.minimum(np.minimum.accumulate(ahead, axis=-1), 0.0)
    return np.asarray(ahead - least)


def mace(excess_s: FloatArray, capacity: FloatArray | float) -> FloatArray:
    """Return Mace_p, the largest excess of any node in each subinterval, in seconds.

    Args:
        excess_s: shape (n, d), as `cumulative_excess` returns it.
        capacity: shape (n,) or one number, C_i.

    Returns:
        Shape (d,). Its maximum is Mace_WC. Source: [mace] Def. 9.
    """
    speed = np.asarray(capacity, dtype=np.float64)
    return np.asarray((excess_s / speed[..., None]).max(axis=0))
