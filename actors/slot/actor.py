"""Wrap a slot as a Ray actor: its control methods, and its users' output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from slackwater.actors.kernel.descendants import adopt_orphans, end_descendants
from slackwater.actors.sinks import print_line
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.slot.keep_memory import keep_freed_memory
from slackwater.actors.slot.last_words import LastWords
from slackwater.actors.slot.pandas_in_code import mention_pandas, take_nanoseconds
from slackwater.actors.slot.report import SlotReport
from slackwater.actors.slot.user_output import OutputLine, UserOutput, runs_users_code
from slackwater.actors.slot.without_pandas import leave_out_pandas, load_pandas
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.slot_plan import SlotPlan

PIECE_BYTES = 900_000
"""Ray puts longer answers (over 1 MiB on local nodes) into its object store, and ends the process
that reads them there when the raylet is gone. So rows travel in pieces."""


class Piece(NamedTuple):
    """Part of a collect sink's rows (Arrow IPC), and the whole's bytes."""

    data: bytes
    of_bytes: int


class SlotActor:
    """A slot as a Ray actor, in few methods: Ray wraps each. `actors/jobs/job.py` places it."""

    def __init__(self, plan: SlotPlan, **settings: Any) -> None:
        keep_freed_memory()
        LastWords.install()
        adopt_orphans()
        self._output: UserOutput | None = None
        if plan.limits.order is not None or any(map(runs_users_code, plan.stages)):
            self._output = UserOutput.install()
        if self._output is None or not mention_pandas((*plan.stages, plan.limits.order)):
            leave_out_pandas()
        import_arrow_functions(plan.stages)
        self._host = SlotHost(plan, show=self._show, **settings)
        self._rows = b""  # of the collect sink under way

    def call(self, method: str, *args: Any) -> Any:
        """Call a control method of the slot; the last report includes the last lines."""
        if method == "prepare":
            self._expect(args[0].stages)
        answer = getattr(self._host, method)(*args)
        if method == "join":
            end_descendants()  # of users' functions; Ray would leave zombies
        if method == "join" and isinstance(answer, SlotReport) and self._output is not None:
            answer.output = self._output.take(is_last=True)
        return answer

    def _expect(self, stages: Sequence[Stage]) -> None:
        """Prepare for stages that come while others run."""
        users = [stage for stage in stages if runs_users_code(stage)]
        if self._output is None and users:
            self._output = UserOutput.install()
        if users and (mention_pandas(users) or take_nanoseconds(users)):
            load_pandas()
        import_arrow_functions(stages)

    def _show(self, line: str) -> None:
        """Show a line on the driver's stdout; without steps that print, in the worker's log."""
        show = print_line if self._output is None else self._output.show
        show(line)

    def collected(self, sink: str, at: int) -> Piece:
        """Return a piece of a collect sink's rows; a copy is made at 0."""
        if at == 0:
            self._rows = self._host.collected(sink)
        rows = self._rows
        if at + PIECE_BYTES >= len(rows):
            self._rows = b""  # the last piece: pieces are fetched in order
        return Piece(rows[at : at + PIECE_BYTES], len(rows))

    def output(self, within_s: float) -> list[OutputLine]:
        """Return the lines that users' functions have printed since the last call.

        Args:
            within_s: how long to wait for a first line.
        """
        if self._output is None:
            return []
        self._output.wait(within_s)
        return self._output.take()


def import_arrow_functions(stages: Iterable[Stage]) -> None:
    """Import Arrow's functions for stages with text, or with users' code.

    The import takes 30 to 60 ms, which would otherwise delay an event. Results of users' code may
    need a cast.

    Expressions that cast, and JSON lines, import them during preparation. An input of ours is cast
    when its first block is read, before the start.
    """
    if any(runs_users_code(stage) or _has_text(stage) for stage in stages):
        arrow_functions()


def _has_text(stage: Stage) -> bool:
    return any(pa.types.is_string(kind) for schema in _schemas(stage) for kind in schema.types)


def _schemas(stage: Stage) -> Iterator[pa.Schema]:
    yield from (step.schema for step in (stage.step, *stage.chain))
    yield from (channel.schema for channel in (*stage.inputs, *stage.outputs))
