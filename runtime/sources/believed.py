"""`BelievedTimes` makes arrivals of event times, for rows that tell none.

```
event time   10   11   99   12   13   70   71   14        ahead_ns=5
believed     10   11   11   12   13   13   71   71
                       99 is alone, and waits   70 and 71 bear each other out: a pause has ended
```

So one row whose clock is far ahead does not make those after it look old, and a pause is not an
error. Of a source with several writers a row of another writer has to bear it out. The first row is
believed.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import running_max

__all__ = ["BelievedTimes"]


class BelievedTimes:
    """Newest event time so far, without rows that are alone far ahead.

    Args:
        ahead_ns: distance ahead of it up to which a row is believed at once, >= 0.
    """

    STATE = Fields("_newest_ns", "_alone")

    def __init__(self, ahead_ns: int) -> None:
        self._ahead_ns = ahead_ns
        self._newest_ns = START_NS
        self._alone: tuple[int, int | None] | None = None  # (time, writer) of the last far row

    def extend(self, event_time_ns: Int64Array, writers: Int64Array | None) -> Int64Array:
        """Return what is believed with each row, shape (rows,).

        Args:
            event_time_ns: shape (rows,), the next of the input.
            writers: shape (rows,), numbers of the rows' writers; None if there is one.
        """
        if not len(event_time_ns):
            return event_time_ns
        newest_ns, alone, ahead_ns = self._newest_ns, self._alone, self._ahead_ns
        if newest_ns == START_NS:
            newest_ns = event_time_ns.item(0)
        believed_ns = running_max(event_time_ns, newest_ns)
        before_ns = np.append(newest_ns, believed_ns[:-1])
        is_near = event_time_ns - ahead_ns <= before_ns
        if not is_near.all():
            numbers = [None] * len(event_time_ns) if writers is None else writers.tolist()
            for row, (time_ns, writer) in enumerate(
                zip(event_time_ns.tolist(), numbers, strict=True)
            ):
                if time_ns - ahead_ns <= newest_ns or _bears_out(time_ns, writer, alone, ahead_ns):
                    newest_ns = max(newest_ns, time_ns)
                else:
                    alone = (time_ns, writer)
                believed_ns[row] = newest_ns
        self._newest_ns, self._alone = int(believed_ns[-1]), alone
        return believed_ns


def _bears_out(
    time_ns: int, writer: int | None, alone: tuple[int, int | None] | None, ahead_ns: int
) -> bool:
    """Whether two far rows in a row are near each other, of two writers."""
    if alone is None or (writer is not None and writer == alone[1]):
        return False
    return abs(time_ns - alone[0]) <= ahead_ns
