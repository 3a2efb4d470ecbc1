"""Predicates that read earlier events of a match."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Batch, Columns
from slackwater.runtime.operators.ground.user_code import holds
from slackwater.runtime.operators.pattern.rows import Rows
from slackwater.runtime.operators.pattern.step import PatternStep


class Conditions:
    """Conditions evaluates these predicates.

    Each is computed as over a batch of one row, so that it means what it means everywhere, nulls
    and whole numbers that do not fit included.

    Args:
        step: the step whose predicates they are.
        rows: the rows of earlier events.
    """

    def __init__(self, step: PatternStep, rows: Rows) -> None:
        self._step = step
        self._rows = rows

    def hold(self, asked: int, turn: int, read: dict[str, int]) -> bool:
        """Return whether a predicate is true of an event and the earlier ones.

        Args:
            asked: the number of the pattern's event.
            turn: the event's place in the stream.
            read: {name of an earlier event: its place in the stream}.
        """
        predicate = self._predicate(asked)
        turns = np.array([turn, *read.values()], dtype=np.int64)
        rows = self._rows.at(turns)
        own = rows.slice(0, 1)
        columns: Columns = dict(own.columns)
        for place, name in enumerate(read, 1):
            event = rows.slice(place, place + 1)
            columns |= {f"{name}.{column}": value for column, value in event.columns.items()}
        batch = Batch(
            event_time_ns=own.event_time_ns, stimulus_time_ns=own.stimulus_time_ns, columns=columns
        )
        return bool(holds(predicate, batch, step=self._step.name)[0])

    def hold_many(self, asked: int, turn: int, name: str, turns: list[int]) -> list[bool] | None:
        """Return the answers for many earlier events of one name, computed together.

        None if one of them cannot be computed. That is an error only if that one is needed.
        """
        predicate = self._predicate(asked)
        own = self._rows.at(np.full(len(turns), turn, dtype=np.int64))
        rows = self._rows.at(np.array(turns, dtype=np.int64))
        wanted = predicate.columns()
        columns: Columns = {key: value for key, value in own.columns.items() if key in wanted}
        named = {f"{name}.{key}": value for key, value in rows.columns.items()}
        columns |= {key: value for key, value in named.items() if key in wanted}
        batch = Batch(
            event_time_ns=own.event_time_ns, stimulus_time_ns=own.stimulus_time_ns, columns=columns
        )
        try:
            truths: list[bool] = holds(predicate, batch, step=self._step.name).tolist()
        except OperatorError:
            return None
        return truths

    def _predicate(self, asked: int) -> Expr:
        predicate = self._step.pattern.asked[asked].also
        assert predicate is not None
        return predicate
