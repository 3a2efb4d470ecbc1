"""Keys that no row touches for long go at multiples of `keep=`, in event time.

```
time    0          keep       2 keep     3 keep     4 keep
key a       ×                 goes
key b       ×          ×                 goes
```

So a key stays for `keep=` at least after its newest row, and for less than twice as long. When it
goes depends on its own rows alone. It goes once the inputs have reached that event time; their end
reaches none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import END_NS, START_NS, Batch, Duration, Int64Array, duration_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.traits import ChangeKind

__all__ = ["Untouched", "changes_of_keys", "keep_length_ns"]


class Untouched:
    """Untouched says at which times keys go.

    Args:
        keep_ns: least time that a key stays after its newest row; None if all stay to the end.

    Attributes:
        forgotten: number of keys so far that went.
    """

    STATE = Fields("_next_ns", "forgotten")

    def __init__(self, keep_ns: int | None) -> None:
        self._keep_ns = keep_ns
        self._next_ns = END_NS  # no key goes before; END_NS if none is known
        self.forgotten = 0

    def next_ns(self, first_ns: int | None, until_ns: int) -> int | None:
        """Return the first time at which a key may go.

        None if none goes until then.

        Args:
            first_ns: event time of the next row; None if none comes until then.
            until_ns: time until which keys may go.
        """
        if self._keep_ns is None:
            return None
        if first_ns is not None:
            self._next_ns = min(self._next_ns, int(self._goes_ns(np.array([first_ns]))[0]))
        return self._next_ns if self._next_ns < END_NS and self._next_ns <= until_ns else None

    def parts(self, rows: Batch | None, until_ns: int) -> Iterator[tuple[Batch | None, int | None]]:
        """Yield rows before each time at which keys may go, and that time.

        The last are the rest of rows, and None.

        Args:
            rows: rows in order; None if there are none.
            until_ns: time that all rows have reached.
        """
        while True:
            first_ns = None if rows is None else rows.event_time_ns.item(0)
            end_ns = self.next_ns(first_ns, until_ns)
            if rows is None or end_ns is None:
                yield rows, end_ns
            else:
                older = int(rows.event_time_ns.searchsorted(end_ns))
                yield rows.slice(0, older) if older else None, end_ns
                rows = rows.slice(older, len(rows)) if older < len(rows) else None
            if end_ns is None:
                return

    def old(self, newest_ns: Int64Array, now_ns: int) -> Int64Array:
        """Return the numbers of keys that go at a time, and count them.

        Args:
            newest_ns: shape (keys,), event time of the newest row of each; START_NS without one.
            now_ns: time that `next_ns` returned.
        """
        there = np.flatnonzero(newest_ns != START_NS)
        goes_ns = self._goes_ns(newest_ns.take(there))
        is_old = goes_ns <= now_ns
        self._next_ns = int(goes_ns[~is_old].min(initial=END_NS))
        old_keys: Int64Array = there[is_old]
        self.forgotten += len(old_keys)
        return old_keys

    def _goes_ns(self, newest_ns: Int64Array) -> Int64Array:
        assert self._keep_ns is not None, "else no key goes"
        turns = np.minimum(newest_ns // self._keep_ns + 2, END_NS // self._keep_ns)
        goes_ns: Int64Array = turns * self._keep_ns
        return goes_ns

    @property
    def or_gone(self) -> str:
        """Text on the cause of an error of a change, where keys go."""
        return "" if self._keep_ns is None else "; if its key has gone, write a longer keep="

    @property
    def way_out(self) -> str:
        """Text on what to write where too much is kept."""
        return "keep='30d'" if self._keep_ns is None else "a shorter keep="

    def counts(self) -> dict[str, int]:
        """Return the number of keys that went, by its name in reports."""
        return {} if self._keep_ns is None else {"forgotten_keys": self.forgotten}


def changes_of_keys(*, goes: bool) -> frozenset[ChangeKind]:
    """Return the kinds of changes of a row for each key, which goes or stays."""
    kinds: list[ChangeKind] = ["inserts", "updates"]
    return frozenset([*kinds, "deletions"] if goes else kinds)


def keep_length_ns(keep: Duration | None, *, step: str) -> int | None:
    """Return `keep=` in nanoseconds.

    Raises:
        SettingError: not a length of time above zero.
    """
    if keep is None:
        return None
    if isinstance(keep, str) and keep in ("promise", "slack"):
        raise SettingError(
            f"step {step!r}: keep={keep!r} is about partners within a time; a key of a table stays "
            "for a length of time: write keep='30d', or omit it"
        )
    return duration_ns(keep, what=f"step {step!r}: keep", positive=True)
