"""The method `map_rows` of streams."""

from __future__ import annotations

from typing import Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.ground.user_code import units_of
from slackwater.runtime.operators.map_rows.machine import MapRowsMachine
from slackwater.runtime.operators.map_rows.step import MapRowsStep, RowFunction


class MappingRows(AnyStream):
    """Streams can go through a function of rows."""

    _entry = Entry(MapRowsStep, MapRowsMachine)

    @checked_call
    def map_rows(
        self,
        function: RowFunction,
        schema: checks.Declared,
        *,
        on_error: OnBad = "error",
        name: str | None = None,
    ) -> Self:
        """Compute rows one at a time, the slow path.

        The function takes a dict, and returns a dict, or None to drop the row.

        Args:
            function: must pickle.
            schema: {column: type} of the rows it returns, or a pyarrow schema.
            on_error: fate of a row for which the function raises, or returns what does not fit
                `schema`: "error" ends the job; "skip" omits and counts it; "divert" sends it to
                `diverted()`.
            name: the name of the step.
        """
        name = self.flow.name_for("map", name)
        checks.function(function, step=name)
        declared = checks.declared_schema(schema, step=name)
        return self._add(
            MapRowsStep(
                name=name,
                inputs=self._in,
                schema=declared,
                function=function,
                units=units_of(self.schema),
                on_error=on_error,
            )
        )
