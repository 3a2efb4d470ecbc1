"""OneRow joins a single row, as most come at the speed of the clock.

`JoinMachine` works on many rows with arrays; this works number by number, since an array of one
element takes as long to make as all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slackwater.runtime.model import Batch, Column
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.join.state import JoinState
from slackwater.runtime.operators.join.step import JoinStep

__all__ = ["COMPARED_AT_MOST", "OneRow"]

COMPARED_AT_MOST = 65_536
"""Up to so many rows are compared one by one: about 30 µs. To search an index takes longer."""
_FIRST = np.zeros(1, dtype=np.int64)


class OneRow:
    """OneRow joins one row at a time.

    Args:
        state: the state of the join.
        keys: the keys of the join.
        step: the step of the join.
        names: names of the left and of the right side, {name a column leaves under: name it came
            under}.
    """

    def __init__(
        self, state: JoinState, keys: KeyIndex, step: JoinStep, names: Sequence[Mapping[str, str]]
    ) -> None:
        self._state, self._keys = state, keys
        self._on, self._reaches_ns = (step.left_on, step.right_on), step.reaches_ns
        self._names = [
            (leaves, name, side)
            for side, those in enumerate(names)
            for leaves, name in those.items()
        ]
        self._came = [tuple(those.values()) for those in names]

    def code(self, batch: Batch, side: int) -> int | None:
        """Return the code of a row's key; None if `JoinMachine` must join the batch.

        A single row is joined here if its key came before, if it is held, and if no row has marks.
        """
        times, rows = batch.event_time_ns, self._state.rows
        if len(times) != 1 or batch.marks is not None or rows.has_marks:
            return None
        if times.item(0) < self._state.horizon_ns or len(rows) > COMPARED_AT_MOST:
            return None
        columns = batch.columns
        return self._keys.known([columns[name] for name in self._on[side]])

    def partners(self, batch: Batch, side: int, code: int) -> list[int]:
        """Hold the row; return the positions of its partners, ascending."""
        state = self._state
        rows, position = state.rows, state.rows.end
        state.append_row(batch, side, code << 1 | side)
        _, partners = rows.partners_before(
            position, reaches_ns=self._reaches_ns, since_ns=state.horizon_ns
        )
        return partners

    def result(self, batch: Batch, side: int, partner: int) -> Batch:
        """Return the pair of the batch's row, which came last, and its partner."""
        rows = self._state.rows
        event_time_ns, stimulus_time_ns, place = rows.last_pair(partner)
        columns: dict[str, Column] = {}
        for leaves, name, of in self._names:
            if of != side:
                columns[leaves] = rows.sides[of].row(name, place)
                continue
            column = batch.columns[name]
            # A copy: a result is not to keep all the rows in memory that its row came with.
            columns[leaves] = (
                column.copy() if isinstance(column, np.ndarray) else column.take(_FIRST)
            )
        return Batch(
            event_time_ns=np.array([event_time_ns]),
            stimulus_time_ns=np.array([stimulus_time_ns]),
            columns=columns,
        )

    def results(self, batch: Batch, side: int, partners: list[int]) -> Batch:
        """Return the pairs of the batch's row and several partners."""
        rows = self._state.rows
        times_ns, stimuli_ns, places = zip(*map(rows.last_pair, partners), strict=True)
        all_first = np.zeros(len(partners), dtype=np.int64)
        theirs = iter(rows.sides[1 - side].take(self._came[1 - side], np.array(places)))
        columns: dict[str, Column] = {}
        for leaves, name, of in self._names:
            columns[leaves] = batch.columns[name].take(all_first) if of == side else next(theirs)
        return Batch(
            event_time_ns=np.array(times_ns), stimulus_time_ns=np.array(stimuli_ns), columns=columns
        )
