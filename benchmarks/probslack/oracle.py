"""The oracle closes windows by all rows of a stream, those still to come too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import BoolArray, Int64Array


@dataclass(frozen=True)
class OracleClosings:
    """When the oracle closes windows. All of shape (windows,), oldest first.

    Attributes:
        end_ns: the end of each.
        closed_at_ns: when it closes it, on a tick; not in the order of their ends.
        missed: whether it misses a row.
    """

    end_ns: Int64Array
    closed_at_ns: Int64Array
    missed: BoolArray


def oracle(
    windows: WindowEnds,
    event_time_ns: Int64Array,
    arrival_ns: Int64Array,
    *,
    miss: float,
    tick_ns: int,
) -> OracleClosings:
    """Return when each window closes such that the mean slack is least, and δ of them miss a row.

    A window closes with the last row that lies in it, though not before t > end − slide; and the
    share δ with the largest slack closes there at once.

    Args:
        windows: which there are; of them, from the first with a row to the last that ends by the
            newest event.
        event_time_ns: shape (rows,), in the order of arrival.
        arrival_ns: shape (rows,), never decreasing.
        miss: δ, in [0, 1].
        tick_ns: the resolution of the clock.

    Raises:
        SettingError: δ is out of its range, or there are no rows.

    Source: [probslack] §4.1. Differs: the paper takes the event-driven slack of each window, which
    counts from the first *irrelevant* event and is worse than ProbSlack; here it counts from the
    last relevant one. It cannot be given as `close=`: it needs the end of the input, and windows
    that it gives up close before older ones.
    """
    if not 0 <= miss <= 1 or not len(event_time_ns):
        raise SettingError(f"an oracle needs rows, and a share of misses from 0 to 1, not {miss!r}")
    first = windows.first_after(int(event_time_ns[0]))
    last = windows.first_after(int(event_time_ns.max())) - 1
    number = np.arange(first, last + 1)
    ends_ns = windows.end_ns(number)
    earliest_ns = ((ends_ns - windows.slide_ns) // tick_ns + 1) * tick_ns
    came_ns = _last_arrival_ns(ends_ns - windows.size_ns, ends_ns, event_time_ns, arrival_ns)
    closed_at_ns = np.maximum(-(-came_ns // tick_ns) * tick_ns, earliest_ns)
    # A window without a row, or whose rows come before it may close, costs nothing to wait for.
    gain_ns = closed_at_ns - earliest_ns
    given_up = np.argsort(-gain_ns, kind="stable")[: int(miss * len(number) + 1e-9)]
    given_up = given_up[gain_ns[given_up] > 0]
    missed = np.zeros(len(number), dtype=np.bool_)
    missed[given_up] = True
    closed_at_ns[given_up] = earliest_ns[given_up]
    return OracleClosings(ends_ns, closed_at_ns, missed)


def _last_arrival_ns(
    begins_ns: Int64Array, ends_ns: Int64Array, event_time_ns: Int64Array, arrival_ns: Int64Array
) -> Int64Array:
    """Return when the last row of each window came; of none, long ago."""
    order = np.argsort(event_time_ns, kind="stable")
    happened, came = event_time_ns[order], arrival_ns[order]
    low = np.searchsorted(happened, begins_ns, side="left")
    high = np.searchsorted(happened, ends_ns, side="left")
    long_ago = np.iinfo(np.int64).min // 2
    if not (came[1:] < came[:-1]).any():
        return np.where(low < high, came[np.maximum(high - 1, 0)], long_ago)
    bounds = np.stack([low, high], axis=1).ravel()
    most = np.maximum.reduceat(np.append(came, long_ago), bounds)[::2]
    latest: Int64Array = np.where(low < high, most, long_ago)
    return latest
