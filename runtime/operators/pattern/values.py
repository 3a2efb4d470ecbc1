"""Values of each row that matchers need, apart from the events that it fits."""

from __future__ import annotations

from slackwater.runtime.model import Batch, Column
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.pattern.step import PatternStep
from slackwater.runtime.patterns.stamped import OFF


class Values:
    """Values reads the columns that must differ, and how far clocks may be off.

    Attributes:
        names: the matchers' names of the columns.
        bounds_cut: rows so far whose own bound was more than the most.
    """

    STATE = Fields("bounds_cut")

    def __init__(self, step: PatternStep) -> None:
        self._step = step
        places = [place for one in step.pattern.alternatives for place in one.places]
        self._distinct = sorted({one.distinct for one in places if one.distinct is not None})
        self.names = self._distinct if step.drift is None else [*self._distinct, OFF]
        self.bounds_cut = 0

    def of(self, rows: Batch) -> list[Column]:
        """Return these columns, in the order of `names`.

        Raises:
            OperatorError: a bound is less than zero; names the row.
        """
        columns = [rows.columns[name] for name in self._distinct]
        if self._step.drift is not None:
            off_ns, cut = self._step.drift.bounds_ns(rows, step=self._step.name)
            self.bounds_cut += cut
            columns.append(off_ns)
        return columns
