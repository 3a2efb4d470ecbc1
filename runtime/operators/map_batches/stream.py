"""The method `map_batches` of streams."""

from __future__ import annotations

from typing import Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.ground.user_code import units_of
from slackwater.runtime.operators.map_batches.machine import MapBatchesMachine
from slackwater.runtime.operators.map_batches.step import BatchFunction, MapBatchesStep


class MappingBatches(AnyStream):
    """Streams can go through a function of batches."""

    _entry = Entry(MapBatchesStep, MapBatchesMachine)

    @checked_call
    def map_batches(
        self,
        function: BatchFunction,
        schema: checks.Declared,
        *,
        on_error: OnBad = "error",
        name: str | None = None,
    ) -> Self:
        """Compute columns with a vectorised function: {name: column} in, {name: column} out.

        Numbers are NumPy arrays, text is an Arrow array. It returns a value for each row, in
        the same order, and only the columns of `schema` leave.

        Args:
            function: its value for a row must not depend on the other rows; must pickle.
            schema: {column: type}, such as {"kmh": "float64"}, or a pyarrow schema.
            on_error: fate of a row for which the function raises, or returns what does not fit
                `schema`: "error" ends the job; "skip" omits and counts it; "divert" sends it to
                `diverted()`. Such rows are found by halves, so a row may be seen twice.
            name: the name of the step.
        """
        name = self.flow.name_for("map", name)
        checks.function(function, step=name)
        declared = checks.declared_schema(schema, step=name)
        return self._add(
            MapBatchesStep(
                name=name,
                inputs=self._in,
                schema=declared,
                function=function,
                units=units_of(self.schema),
                on_error=on_error,
            )
        )
