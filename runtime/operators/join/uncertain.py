"""A join with `drift=` finds pairs that are surely near enough, and possible ones.

```
|t1 − t2|    0 ────────── within − b1 − b2 ────────── within + b1 + b2 ──────▶
                certain                    uncertain                    no pair
```

Each of two times may be off by its bound, so their difference may be by the sum of both. It is a
join over the widest distance, whose rows carry their time and their bound; pairs further apart
than the bounds of their own two rows allow are left out.
Source: [thesis] §3.2.3 does it for windows and patterns; joins are its future work (§6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import Batch, GateRead, Int64Array
from slackwater.runtime.model.row_marks import UNCERTAIN, marked
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.contract import Operator, PlainOperator, Result
from slackwater.runtime.operators.ground.drift import CERTAIN
from slackwater.runtime.operators.join.machine import JoinMachine
from slackwater.runtime.operators.join.step import JoinStep

_TIMES = ("\0left time", "\0right time")
_BOUNDS = ("\0left bound", "\0right bound")
_OWN = frozenset({*_TIMES, *_BOUNDS})
"""Columns that rows carry inside; no column of a user's begins like them."""


def join_machine(step: JoinStep, *, most_kept_rows: int) -> Operator:
    """Return the machine of a `JoinStep`, with or without `drift`."""
    machine = JoinMachine if step.drift is None else UncertainJoin
    return machine(step, most_kept_rows=most_kept_rows)


class UncertainJoin(PlainOperator):
    """The machine of a `JoinStep` with `drift`.

    Every pair that may be near enough leaves, as `JoinMachine` says; whether it surely is, its
    column `certain` says, and one that is not carries the mark `uncertain`. Costs: two numbers
    more for each row held, and rows are held for as much longer as clocks may be off.

    Attributes:
        bounds_cut: rows so far whose own bound was more than the most.
    """

    STATE = Fields(Field("_joined", by=OWNER), "bounds_cut")

    def __init__(self, step: JoinStep, *, most_kept_rows: int) -> None:
        assert step.drift is not None
        self._step, self._drift = step, step.drift
        inside = [pa.field(name, pa.int64()) for name in (*_TIMES, *_BOUNDS)]
        right = (_TIMES[1], _BOUNDS[1])
        self._joined = JoinMachine(
            replace(
                step,
                drift=None,
                within_ns=step.widest_ns,
                schema=pa.schema([*(one for one in step.schema if one.name != CERTAIN), *inside]),
                right_names={**step.right_names, **dict(zip(right, right, strict=True))},
            ),
            most_kept_rows=most_kept_rows,
        )
        self.bounds_cut = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        result = self._joined.work(
            replace(released, ports=self._timed(released.ports), late=self._timed(released.late)),
            now_ns,
        )
        rows = None if result.rows is None else self._judged(result.rows)
        late = [replace(one, batch=_as_it_came(one.batch)) for one in result.late]
        return result._replace(rows=rows, late=late)

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {**self._joined.counts(), **self._drift.counts(self.bounds_cut)}

    def _timed(self, ports: Sequence[Batch | None]) -> list[Batch | None]:
        """Return the rows of each port with their times and bounds as columns."""
        timed: list[Batch | None] = []
        for side, batch in enumerate(ports):
            if batch is None:
                timed.append(None)
                continue
            bounds, cut = self._drift.bounds_ns(batch, step=self._step.name)
            self.bounds_cut += cut
            own = {_TIMES[side]: batch.event_time_ns, _BOUNDS[side]: bounds}
            timed.append(Batch.like(batch, {**batch.columns, **own}))
        return timed

    def _judged(self, made: Batch) -> Batch | None:
        """Return the pairs that may be near enough, and of each whether it surely is."""
        left, right, left_bound, right_bound = (_whole(made, one) for one in (*_TIMES, *_BOUNDS))
        apart_ns, off_ns = np.abs(left - right), left_bound + right_bound
        is_near = apart_ns - off_ns <= self._step.within_ns
        if not is_near.all():
            made, apart_ns, off_ns = made.keep(is_near), apart_ns[is_near], off_ns[is_near]
            if not len(made):
                return None
        certain = apart_ns + off_ns <= self._step.within_ns
        columns = {
            name: certain if name == CERTAIN else made.columns[name]
            for name in self._step.schema.names
        }
        marks = marked(UNCERTAIN, ~certain, made.marks)
        return made.with_(columns=columns, marks=marks)

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return self._joined.rows_held

    @property
    def late_dropped(self) -> int:  # noqa: D102 - see Operator
        return self._joined.late_dropped


def _whole(batch: Batch, name: str) -> Int64Array:
    numbers = batch.columns[name]
    assert isinstance(numbers, np.ndarray), "made above: whole numbers"
    return numbers


def _as_it_came(batch: Batch) -> Batch:
    kept = {name: column for name, column in batch.columns.items() if name not in _OWN}
    return Batch.like(batch, kept)
