"""Promise of several numbered writers: the least released event time of those not silent.

```
clock      0    10   20   30   31   40     b's timeout is 15
a          1         21   29        39
b               12             (silent)
promised   -    1    12   12   29   39     at 31 b has been silent for longer than its timeout
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.step_line import StepLine
from slackwater.runtime.progress.frontier_of_rows import WriterEntries, frontier_of_rows


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends of writers' waits in a piece of the input: who fell silent, and when.

    Attributes:
        ended_ns: times, first of `fallen`, then of `within`.
        writers: the writer of each.
        was_silent: shape (writers,), whether a writer was silent before the piece.
        fallen: writers that spoke before the piece and fell silent in it.
        within: rows, by writer, after which the writer fell silent.
    """

    ended_ns: Int64Array
    writers: Int64Array
    was_silent: BoolArray
    fallen: Int64Array
    within: Int64Array


class Silence:
    """Silence of writers. Source: [thesis] §3.2.2, the flag of a timed-out source.

    Differs: nothing is known of writers that have not been heard; the source waits for them until
    `longest_ns` after the first arrival.

    Args:
        longest_ns: the longest wait for a writer.

    Attributes:
        released_ns: shape (writers,), the newest event time released of each.
    """

    STATE = Fields("_first_ns", "released_ns", "_silent_ns", "_is_silent")

    def __init__(self, longest_ns: int) -> None:
        self._longest_ns = longest_ns
        self._first_ns: int | None = None
        self.released_ns = np.empty(0, dtype=np.int64)
        self._silent_ns = np.empty(0, dtype=np.int64)  # when each is silent if nothing follows
        self._is_silent = np.empty(0, dtype=np.bool_)

    def make_room(self, writers: int) -> None:
        """Make room for `writers` writers."""
        new = writers - len(self.released_ns)
        if new > 0:
            never = np.full(new, START_NS, dtype=np.int64)
            self.released_ns = np.append(self.released_ns, never)
            self._silent_ns = np.append(self._silent_ns, never)
            self._is_silent = np.append(self._is_silent, np.ones(new, dtype=np.bool_))

    def ends(
        self,
        writers: Int64Array,
        clock_ns: Int64Array,
        silent_ns: Int64Array,
        until_ns: int,
    ) -> Ends:
        """Return the writers that fell silent before `until_ns`, and note who is silent.

        Args:
            writers: shape (rows,), in the order by writer, and of coming within each.
            clock_ns: shape (rows,), the newest arrival up to each row.
            silent_ns: shape (rows,), when its writer is silent if nothing follows the row.
            until_ns: time of the newest arrival.
        """
        if self._first_ns is None and len(clock_ns):
            self._first_ns = int(clock_ns.min())
        is_last = np.append(writers[1:] != writers[:-1], True)[: len(writers)]
        is_first = np.append(True, is_last[:-1])[: len(writers)]
        next_ns = np.where(is_last, until_ns, np.append(clock_ns[1:], 0)[: len(writers)])
        within = (silent_ns < next_ns).nonzero()[0]
        # Writers that spoke in earlier pieces, up to their first row in this piece.
        first_ns = np.full(len(self._silent_ns), until_ns, dtype=np.int64)
        first_ns[writers[is_first]] = clock_ns[is_first]
        was_silent = self._is_silent.copy()
        fallen = (~was_silent & (self._silent_ns < first_ns)).nonzero()[0]
        ended_ns = np.concatenate((self._silent_ns[fallen], silent_ns[within]))
        fell = np.concatenate((fallen, writers[within]))
        spoke = writers[is_last]
        self._is_silent[fallen] = True
        self._is_silent[spoke] = silent_ns[is_last] < until_ns
        self._silent_ns[spoke] = silent_ns[is_last]
        return Ends(ended_ns, fell, was_silent, fallen, within)

    def least_ns(
        self,
        spoken: tuple[Int64Array, Int64Array],
        left: tuple[Int64Array, Int64Array, Int64Array],
        ends: Ends,
        line: StepLine,
    ) -> Int64Array:
        """Return the least event time over writers not silent, at each step, and note it.

        Args:
            spoken: (writer, step) of each row read, as given to `ends`.
            left: (writer, step, newest event time of its writer up to there) of each row that left.
            ends: the result of `ends`.
            line: steps of the writers.

        Returns:
            Shape (steps,); START_NS where all writers are silent.
        """
        steps, known = len(line.time_ns), len(self.released_ns)
        rows, leaving, fallen = len(spoken[0]), len(left[0]), len(ends.fallen)
        speaks_until = np.full(known + rows + leaving, steps)
        speaks_until[:known][ends.was_silent] = 0
        speaks_until[ends.fallen] = line.of_silence[:fallen]
        speaks_until[known + ends.within] = line.of_silence[fallen:]
        writer = np.concatenate((np.arange(known), spoken[0], left[0]))
        step = np.concatenate((np.zeros(known, dtype=np.int64), spoken[1], left[1]))
        value = np.concatenate((self.released_ns, np.zeros(rows, dtype=np.int64), left[2]))
        is_value = np.repeat([True, False, True], (known, rows, leaving))
        is_spoken = np.repeat([True, True, False], (known, rows, leaving))

        unknown_until = 0
        if self._first_ns is not None:
            unknown_ns = self._first_ns + self._longest_ns
            unknown_until = int(line.time_ns.searchsorted(unknown_ns, side="right"))
        heard = WriterEntries(writer, step, value, speaks_until, is_value, is_spoken)
        promised_ns, self.released_ns = frontier_of_rows(
            heard, steps=steps, unknown_until=unknown_until
        )
        promised_ns[promised_ns == END_NS] = START_NS
        return promised_ns

    def next_ns(self) -> int | None:
        """Return when the next writer falls silent if nothing comes; None if none is awaited."""
        awaited_ns = self._silent_ns[~self._is_silent]
        return int(awaited_ns.min()) if len(awaited_ns) else None
