"""Stream under construction: every method adds a step and returns its stream.

No step runs here. Each call checks names, columns and types at once, so an error points at
the line that is wrong. Most methods belong to operators, each in its folder (`runtime/operators/`).
"""

from __future__ import annotations

from slackwater.runtime.errors import FlowError
from slackwater.runtime.flow import checks, late_rows
from slackwater.runtime.operators import KeyedMethods, StreamMethods
from slackwater.runtime.operators.ground.checks import key_types
from slackwater.runtime.plan.step import Side
from slackwater.runtime.plan.steps import SinkStep
from slackwater.runtime.sinks import Output


class Stream(StreamMethods):
    """Stream that leaves one step. May feed any number of steps, even one twice."""

    def key_by(self, *keys: str) -> KeyedStream:
        """Name the key columns of the next aggregate or join. Adds no step.

        Raises:
            ColumnError, TypeMismatch: a key is missing, or is neither text nor a whole number.
        """
        if not keys:
            raise FlowError(f"key_by on {self.name!r} needs a column, such as key_by('area')")
        key_types(self.schema, keys, step=self.name)
        return KeyedStream(self, keys)

    def late(self, side: Side | None = None, *, name: str | None = None) -> Stream:
        """Return a stream of the rows that came too late to count in full.

        The step is a join, an aggregate, a pattern, followed_by or process.

        Args:
            side: of a join: the rows of its "left" or "right" with all their columns; None: the
                keys of both.
            name: of the step.

        The stream has these columns, and `late_step`, `late_side` (of a join), `late_event_time`,
        `late_by_ns`, and `late_dropped`: false for a row that missed only some of its windows or
        partners. The event time of a row in this stream is when it was found late.

        Raises:
            FlowError: this stream comes from a step of another kind, or a side is given and the
                step is no join.
            DuplicateName: a column has one of these names already.
        """
        name = self.flow.name_for("late", name)
        return self._add(late_rows.late_step(self.flow.steps, self.name, side=side, name=name))

    def sink(self, name: str, output: Output) -> None:
        """Write the rows to an output, one of ours or a custom one (`Output`).

        Args:
            name: of the sink.
            output: parquet_sink(path), jsonl_sink, callback_sink, collect_sink, or any object
                with `describe()` and `open(schema, context)`.

        Raises:
            TypeMismatch: `output` is no output.
            SinkError: its `describe` raised; names the sink, the class and the line.
            FlowError: a step has this name, or the sink's options cannot be fulfilled here.
        """
        name = self.flow.name_for("sink", name)
        checks.output(output, step=name)
        self._add(SinkStep(name=name, inputs=self._in, schema=self.schema, output=output))


class KeyedStream(KeyedMethods[Stream]):
    """Stream with its key columns."""
