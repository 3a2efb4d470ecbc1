"""Wrap a slot as a Ray actor: its control methods, and its users' output."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from slackwater.actors.kernel.descendants import adopt_orphans, end_descendants
from slackwater.actors.sinks.slot_sinks import print_line
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.slot.last_words import LastWords
from slackwater.actors.slot.process_setup import (
    import_arrow_functions,
    keep_freed_memory,
    leave_out_pandas,
    load_pandas,
    take_short_turns,
)
from slackwater.actors.slot.report import SlotReport
from slackwater.actors.slot.silence import SilenceWatch
from slackwater.actors.slot.user_output import OutputLine, UserOutput, runs_users_code
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.slot_plan import SlotPlan

PIECE_BYTES = 900_000
"""Ray puts longer answers (over 1 MiB on local nodes) into its object store, and ends the process
that reads them there when the raylet is gone. So rows travel in pieces."""
OVER_LOOK_S, OVER_LOOKS = 1.0, 3
"""Time between two looks at whether a job is over, and number of them that must say so."""
LEAVE_S = 3.0
"""Time for a slot to end its sinks, once its job is over."""


class Piece(NamedTuple):
    """Part of a collect sink's rows (Arrow IPC), and the whole's bytes."""

    data: bytes
    of_bytes: int


class WarmProcess(NamedTuple):
    """A process that may begin with a slot.

    Attributes:
        node_id: id of its node.
        cpus: CPUs that it holds.
        is_spare: whether no slot is in use there.
    """

    node_id: str
    cpus: int
    is_spare: bool


class SlotActor:
    """A slot as a Ray actor, in few methods: Ray wraps each. `actors/jobs/job.py` places it.

    Args:
        plan: the slot's part of the plan.
        is_over: whether the job has ended, of a process that no other one owns; None if one does.
        settings: settings of its `SlotHost`.
    """

    def __init__(
        self, plan: SlotPlan, *, is_over: Callable[[], bool] | None = None, **settings: Any
    ) -> None:
        keep_freed_memory()
        take_short_turns()
        page = LastWords.install()
        self._pulse = None if page is None else page.pulse
        self._silence, self._is_spare = SilenceWatch(), True
        adopt_orphans()
        self._output: UserOutput | None = None
        if plan.limits.order is not None or any(map(runs_users_code, plan.stages)):
            self._output = UserOutput.install()
            load_pandas()
        else:
            leave_out_pandas()
        import_arrow_functions(plan.stages)
        self._host = self._hosted(plan, settings)
        self._rows = b""  # of the collect sink under way
        if is_over is not None:
            threading.Thread(target=self._end_with_job, args=(is_over,), daemon=True).start()

    def again(self, plan: SlotPlan, **settings: Any) -> None:
        """Begin with a new slot in this process: the next attempt of its job."""
        self._is_spare = False
        self._silence.end()
        self._host.leave()
        self._expect(plan.stages)
        self._host = self._hosted(plan, settings)

    def place(self) -> WarmProcess:
        """Return where this process is, for a job that takes it over."""
        import ray  # noqa: PLC0415 (tests of slots do without)

        context: Any = ray.get_runtime_context()  # in part untyped
        cpus = context.get_assigned_resources().get("CPU", 0)
        return WarmProcess(context.get_node_id(), int(cpus), self._is_spare)

    def watch(self, pids: Sequence[int], lost_s: float) -> None:
        """Supervise these slots' processes on this node, until another call, or a slot begins here.

        So a call that ends before is of a process that has ended.

        Args:
            pids: ids of the processes.
            lost_s: silence after which a process is ended; see `Limits.lost_ns`.
        """
        self._silence.watch(pids, lost_s)

    def _hosted(self, plan: SlotPlan, settings: dict[str, Any]) -> SlotHost:
        return SlotHost(plan, show=self._show, pulse=self._pulse, **settings)

    def call(self, method: str, *args: Any) -> Any:
        """Call a control method of the slot; the last report includes the last lines."""
        self._is_spare = False  # a spare is asked for nothing of a slot
        if method == "prepare":
            self._expect(args[0].stages)
        answer = getattr(self._host, method)(*args)
        if method == "join":
            end_descendants()  # of users' functions; Ray would leave zombies
        if method == "join" and isinstance(answer, SlotReport) and self._output is not None:
            answer.output = self._output.take(is_last=True)
        return answer

    def _end_with_job(self, is_over: Callable[[], bool]) -> None:
        """End this process, and its slot in order, once its job has ended."""
        looks = 0
        while looks < OVER_LOOKS:  # a head that begins again may not know a job for a moment
            time.sleep(OVER_LOOK_S)
            looks = looks + 1 if is_over() else 0
        leaving = threading.Thread(target=self._host.leave, daemon=True)
        leaving.start()
        leaving.join(LEAVE_S)
        end_descendants()
        os._exit(1)

    def _expect(self, stages: Sequence[Stage]) -> None:
        """Prepare for stages that come while others run."""
        if self._output is None and any(map(runs_users_code, stages)):
            self._output = UserOutput.install()
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
