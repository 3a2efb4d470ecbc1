"""Skew of keys: a replica with far more rows, and its hot key.

```
of 100 rows    a b a c a d a …        key a in half of them
pairs.1        a a a … + 25 others    75 rows, 3 × as many as the other
pairs.2        25 others              a key stays in one replica
```
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.model import Batch
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.state import Fields

__all__ = ["KeySample", "Skew", "skew_of"]

FAR_MORE = 2.0
"""Rows of a replica, × the mean of the others, above which the step is skewed."""
LEAST_ROWS = 10_000
"""Rows of a step below which chance divides them, too."""
HOT = 0.2
"""Share of a replica's sampled keys above which one of them is hot."""
_OF_A_READ = 8
_MOST_KEYS = 1_024


@dataclass
class Skew(JsonObject):
    """Skew of a step with replicas."""

    step: str
    replica: str
    """Stage of the replica with most rows."""
    share: float
    """Share of the step's rows that it got."""
    times: float
    """Its rows, × the mean of the other replicas, each by the share that it is to get."""
    key: str = ""
    """Key that is hot there, as text; empty if none is known."""
    key_share: float = 0.0
    """Share of the replica's sampled rows with this key."""

    @property
    def note(self) -> str:
        """Text for the report."""
        hot = f"; {self.key_share:.0%} of these have the key {self.key}" if self.key else ""
        return (
            f"{self.step!r} is skewed: replica {self.replica!r} got {self.share:.0%} of its rows, "
            f"{self.times:.1f} × as many as each other replica{hot}. A key stays in one replica, "
            "so more replicas do not help; share='all', where the step takes it, divides its rows"
        )


def skew_of(
    step: str,
    rows: Mapping[str, int],
    shares: Mapping[str, int],
    hot: Mapping[str, tuple[str, float]],
) -> Skew | None:
    """Return the skew of a step; None if its replicas have similar rows.

    Args:
        step: name of the step.
        rows: {replica: rows that came to it}, of replicas that own keys.
        shares: {replica: share of the rows that it is to get, in 128th}.
        hot: {replica: its hot key as text, and its share}; empty text if none is known.
    """
    total = sum(rows.values())
    if len(rows) < 2 or total < LEAST_ROWS:
        return None
    most = max(rows, key=lambda replica: rows[replica] / shares[replica])
    others = max(total - rows[most], len(rows) - 1) / (sum(shares.values()) - shares[most])
    times = rows[most] / shares[most] / others
    return Skew(step, most, rows[most] / total, times, *hot[most]) if times > FAR_MORE else None


class KeySample:
    """Sample of a replica's keys: some rows of each of its last reads.

    Args:
        port_keys: key columns of each port.
    """

    STATE = Fields("_keys")

    def __init__(self, port_keys: Sequence[Sequence[str]]) -> None:
        self._port_keys = port_keys
        self._keys: deque[tuple[object, ...]] = deque(maxlen=_MOST_KEYS)

    def add(self, ports: Iterable[Batch | None]) -> None:
        """Take a few rows of each port."""
        for batch, names in zip(ports, self._port_keys, strict=False):
            if batch is not None:
                step = -(-len(batch.event_time_ns) // _OF_A_READ)
                self._keys.extend(
                    zip(*[_values(batch.columns[name], step) for name in names], strict=True)
                )

    def derive(self) -> None:
        """Make tuples of restored keys, to be counted."""
        self._keys = deque(map(tuple, self._keys), maxlen=_MOST_KEYS)

    def hot(self) -> tuple[str, float]:
        """Return the hot key as text, and its share; ("", 0) if none is hot."""
        if len(self._keys) < _OF_A_READ:
            return "", 0.0
        ((key, times),) = Counter(self._keys).most_common(1)
        share = times / len(self._keys)
        if share < HOT:
            return "", 0.0
        names = self._port_keys[0]
        return ", ".join(f"{n}={v!r}" for n, v in zip(names, key, strict=True)), share


def _values(column: object, step: int) -> list[object]:
    if isinstance(column, np.ndarray):
        values: list[object] = column[::step].tolist()
    elif isinstance(column, Nullable):
        values = column[::step].to_pylist()
    else:
        values = column.take(np.arange(0, len(column), step)).to_pylist()  # type: ignore[attr-defined, arg-type]
    return values
