"""What several numbered writers promise together: the least that was released of those that speak.

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
from slackwater.runtime.progress.frontier_of_rows import Told, frontier_of_rows


@dataclass(frozen=True, slots=True)
class Ends:
    """Whose silence was too long, in a piece of the input.

    Attributes:
        ended_ns: when, of those that spoke before, then of those that spoke in it; `who`, likewise.
        was_silent: shape (writers,), who was before.
        fallen: those of the writers that had spoken before the piece.
        within: the rows, by writer, behind which one fell silent.
    """

    ended_ns: Int64Array
    who: Int64Array
    was_silent: BoolArray
    fallen: Int64Array
    within: Int64Array


class Silence:
    """Who is silent when. Source: [thesis] §3.2.2, the flag of a source that has timed out.

    Differs: of writers that have not been heard of nobody knows; they are waited for until
    `longest_ns` behind the first arrival.

    Args:
        longest_ns: the longest that anybody is waited for.

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
        """Know so many writers."""
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
        """Return when writers were silent for too long, before `until_ns`, and remember who is.

        Args:
            writers: shape (rows,), in the order by writer, and of coming within each.
            clock_ns: shape (rows,), the newest arrival up to each row.
            silent_ns: shape (rows,), when its writer is silent if nothing follows it.
            until_ns: how far arrivals have come.
        """
        if self._first_ns is None and len(clock_ns):
            self._first_ns = int(clock_ns.min())
        is_last = np.append(writers[1:] != writers[:-1], True)[: len(writers)]
        is_first = np.append(True, is_last[:-1])[: len(writers)]
        next_ns = np.where(is_last, until_ns, np.append(clock_ns[1:], 0)[: len(writers)])
        within = (silent_ns < next_ns).nonzero()[0]
        # Those that spoke in earlier pieces, up to their first row in this one.
        first_ns = np.full(len(self._silent_ns), until_ns, dtype=np.int64)
        first_ns[writers[is_first]] = clock_ns[is_first]
        was_silent = self._is_silent.copy()
        fallen = (~was_silent & (self._silent_ns < first_ns)).nonzero()[0]
        ended_ns = np.concatenate((self._silent_ns[fallen], silent_ns[within]))
        who = np.concatenate((fallen, writers[within]))
        spoke = writers[is_last]
        self._is_silent[fallen] = True
        self._is_silent[spoke] = silent_ns[is_last] < until_ns
        self._silent_ns[spoke] = silent_ns[is_last]
        return Ends(ended_ns, who, was_silent, fallen, within)

    def least_ns(
        self,
        spoken: tuple[Int64Array, Int64Array],
        left: tuple[Int64Array, Int64Array, Int64Array],
        ends: Ends,
        line: StepLine,
    ) -> Int64Array:
        """Return the least over the writers that are not silent, at each step, and remember it.

        Args:
            spoken: (writer, step) of each row read, as `ends` was given them.
            left: (writer, step, newest event time of its writer up to there) of each that left.
            ends: what `ends` returned.
            line: the steps.

        Returns:
            Shape (steps,); START_NS where nobody speaks.
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
        told = Told(writer, step, value, speaks_until, is_value, is_spoken)
        promised_ns, self.released_ns = frontier_of_rows(
            told, steps=steps, unknown_until=unknown_until
        )
        promised_ns[promised_ns == END_NS] = START_NS
        return promised_ns

    def next_ns(self) -> int | None:
        """Return when the next writer is silent if nothing comes; None: none is waited for."""
        waited = self._silent_ns[~self._is_silent]
        return int(waited.min()) if len(waited) else None
