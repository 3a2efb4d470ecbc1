"""Timeout of a missing number of one writer, learnt from its arrivals and waits.

```
arrivals   0   10   20   36     α = 0.6
t_avg      -   10   10   12.4   Eq. 3.4, then 3.2: the old value weighs α
t_dev      -   -    0    1.44   Eq. 3.5, then 3.3
t_inter    -   10   10   15.28  Eq. 3.1
```
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields


class Timeout:
    """Timeout of one writer, Eq. 3.11: the larger of two estimates, at most `longest_ns`.

    Source: [thesis] §3.2.1, Eq. 3.1-3.11. Read so: each average is renewed first, and its
    deviation is taken from the renewed one, in the order in which the equations stand. Differs:
    Eq. 3.5 has the absolute value that Eq. 3.3 and 3.10 have; and before two events came in order
    the timeout is `longest_ns`, where the thesis' zeros would give up every gap at once.

    Args:
        longest_ns: longest wait, t_latency-th, > 0.
        alpha: the weight of the old value in t_inter, 0 <= alpha < 1.
        beta: the same for t_buffer.
        least_ns: the shortest timeout, if it is below `longest_ns`; not in the thesis.
    """

    STATE = Fields("_last_ns", "_avg", "_dev", "_held_avg", "_held_dev")

    __slots__ = (
        "_alpha",
        "_avg",
        "_beta",
        "_dev",
        "_held_avg",
        "_held_dev",
        "_last_ns",
        "_least",
        "_most",
    )

    def __init__(self, longest_ns: int, *, alpha: float, beta: float, least_ns: int = 0) -> None:
        self._most, self._alpha, self._beta = longest_ns, alpha, beta
        self._least = least_ns
        self._last_ns: int | None = None  # t_last
        self._avg: float | None = None
        self._dev: float | None = None
        self._held_avg: float | None = None
        self._held_dev: float | None = None

    @property
    def inter_ns(self) -> float | None:
        """t_inter, Eq. 3.1; None if fewer than two events came in order."""
        return None if self._avg is None else self._avg + 2 * (self._dev or 0.0)

    @property
    def buffer_ns(self) -> float:
        """t_buffer, Eq. 3.6; zero until an event has waited for a missing one."""
        return (self._held_avg or 0.0) + 2 * (self._held_dev or 0.0)

    @property
    def timeout_ns(self) -> int:
        """t_timeout, Eq. 3.11."""
        inter_ns = self.inter_ns
        if inter_ns is None:
            return self._most
        return int(min(self._most, max(inter_ns, self.buffer_ns, self._least)))

    def came_in_order(self, arrival_ns: Sequence[int]) -> None:
        """Count events with the expected number, by their arrivals: Eq. 3.2-3.5."""
        self._follow(arrival_ns, None)

    def came_in_order_each(self, arrival_ns: Sequence[int]) -> Int64Array:
        """Count such events; return the timeout after each, shape (events,)."""
        inter: list[float] = []
        self._follow(arrival_ns, inter)
        either = np.maximum(np.array(inter), max(self.buffer_ns, self._least))
        after: Int64Array = np.minimum(either, self._most).astype(np.int64)
        return after

    def waited(self, delays_ns: Sequence[int]) -> None:
        """Count waits of events for the event before them: Eq. 3.7-3.10."""
        beta, fresh = self._beta, 1 - self._beta
        for delay_ns in delays_ns:
            if self._held_avg is None:
                self._held_avg = float(delay_ns)
                continue
            self._held_avg = beta * self._held_avg + delay_ns * fresh
            off_ns = abs(delay_ns - self._held_avg)
            known = self._held_dev
            self._held_dev = off_ns if known is None else beta * known + off_ns * fresh

    def _follow(self, arrival_ns: Sequence[int], inter: list[float] | None) -> None:
        # Event by event, since the result must not depend on how events are cut into calls. It is
        # the only Python that runs for a row in order, and takes about a tenth of a microsecond.
        if not arrival_ns:
            return
        alpha, fresh = self._alpha, 1 - self._alpha
        events, last_ns = iter(arrival_ns), self._last_ns
        avg, dev = self._avg, self._dev
        while dev is None:  # the first three
            now_ns = next(events, None)
            if now_ns is None:
                self._last_ns, self._avg = last_ns, avg
                return
            if last_ns is not None:
                since_ns = float(now_ns - last_ns)
                if avg is None:
                    avg = since_ns
                else:
                    avg = alpha * avg + since_ns * fresh
                    dev = abs(since_ns - avg)
            last_ns = now_ns
            if inter is not None:
                known = float(self._most) if avg is None else avg + 2 * (dev or 0.0)
                inter.append(known)
        assert avg is not None, "it is known before the deviation"
        for now_ns in events:
            since_ns = now_ns - last_ns  # type: ignore[operator]
            last_ns = now_ns
            avg = alpha * avg + since_ns * fresh
            dev = alpha * dev + abs(since_ns - avg) * fresh
            if inter is not None:
                inter.append(avg + 2 * dev)
        self._last_ns, self._avg, self._dev = last_ns, avg, dev
