"""Node of a source: it reads blocks, and hands over rows that are due.

```
a's rows due  |   |   |   |   |        paced sources are looked at once in `source_gap_ns`, all of
b's rows due    |    |    |    |       a slot's at one time: it sleeps and wakes once for them
looks         |      |      |      |
```
"""

from __future__ import annotations

from slackwater.runtime.measure.outcomes import READY
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import END_NS, START_NS, Message
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule.accounts import count_source
from slackwater.runtime.schedule.arrivals import teller_of
from slackwater.runtime.schedule.node import Handed, Node
from slackwater.runtime.schedule.stage_sampler import StageSampler
from slackwater.runtime.sources.machine import SourceMachine
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["POLL_NS", "Looks", "SourceNode", "source_of"]


POLL_NS, LEAST_POLL_NS = 5_000_000, 1_000_000
POLL_SHARE = 8
"""An input that had nothing, and does not say when it has, is polled again after an eighth of the
time since it last had something, 1 to 5 ms."""


class Looks:
    """Looks of a slot at its paced sources: waking up costs more than a look.

    Args:
        gap_ns: between two looks, at least.
    """

    STATE = Fields("_last_ns", "next_ns")

    def __init__(self, gap_ns: int) -> None:
        self._gap_ns = gap_ns
        self._last_ns = START_NS
        self.next_ns = START_NS
        """No look before."""

    def look(self, now_ns: int) -> int:
        """Return when to look at a source again that is looked at now."""
        if not self._last_ns <= now_ns < self.next_ns:
            self._last_ns, self.next_ns = now_ns, now_ns + self._gap_ns
        return self.next_ns


class SourceNode(Node):
    """Node of a source: it reads blocks, and takes what is due of them.

    Both are work, and what they cost is the source's. A paced source reads as soon as its last
    block has been taken: its next row may be due already.

    Args:
        machine: of the source.
        report: of the stage.
        sampler: of the stage; None: it takes no samples.
        spec: settings of the source.
        diverts: whether a stream takes the rows that it cannot use.
        start_ns: of the job.
        looks: of its slot.

    Attributes:
        machine: of the source.
        is_paced: whether it replays arrivals at the speed of a clock.
        next_take_ns: a paced source takes no rows before.
        looks: of its slot.
        wakes: whether its input ends the slot's sleep when it has something.
    """

    STATE = Fields("machine", "next_take_ns")

    def __init__(
        self,
        machine: SourceMachine,
        report: StageReport,
        sampler: StageSampler | None,
        *,
        spec: SourceSpec,
        diverts: bool,
        start_ns: int,
        looks: Looks,
    ) -> None:
        self.machine, self.is_paced = machine, spec.speed is not None
        self._report, self._sampler, self._diverts = report, sampler, diverts
        self.next_take_ns = start_ns
        self.looks = looks
        self.wakes = spec.traits.wakes
        # Whether a thread reads its input, which gets rows while the job runs.
        self._is_live = self.wakes and not spec.is_history and not self.is_paced
        # From when the next rows of a live input count; None if the input has existing data.
        self._turn_ns = start_ns if self._is_live else None
        self._polled_ns: int | None = None  # when the input had nothing; None: it may have rows
        self._found_ns = start_ns  # when it last had something
        self._caught_up_ns = start_ns  # when it last had nothing

    def wakeup(self, rank_ns: int | None = None) -> Wakeup | None:
        """Return the next work; None if it is over, or waits to be woken."""
        del rank_ns
        machine, next_ns = self.machine, self.next_take_ns
        if self.is_paced and self._polled_ns is None and (due_ns := machine.due_ns) is not None:
            return Wakeup(due_ns if due_ns > next_ns else next_ns, due_ns)
        if machine.is_over:
            return None
        if self._polled_ns is not None:
            return self._after_nothing(self._polled_ns)
        if self.is_paced:  # unread
            return Wakeup(START_NS, machine.last_due_ns)
        return Wakeup(next_ns, self._turn_ns)

    def _after_nothing(self, polled_ns: int) -> Wakeup | None:
        """Return when to poll an input again that had nothing then."""
        ends_ns = self.machine.wait_ends_ns
        if self.wakes:
            return None if ends_ns is None else Wakeup(ends_ns, None)
        since_ns = polled_ns - self._found_ns
        poll_ns = polled_ns + min(max(since_ns // POLL_SHARE, LEAST_POLL_NS), POLL_NS)
        if ends_ns is not None and ends_ns <= poll_ns:
            return Wakeup(ends_ns, None)
        return Wakeup(poll_ns, self.machine.last_due_ns if self.is_paced else None, is_guess=True)

    def work(self, now_ns: int, *, max_rows: int) -> Handed:
        """Read a block, or hand over what is due now, about `max_rows` rows at most."""
        machine = self.machine
        before = machine.taken
        message = self._take(now_ns, max_rows)
        released = 0 if message is None else message.rows + machine.left_out
        taken = max(machine.taken - before, released)
        if message is None:
            return Handed(taken=taken, released=released, has_read=True)
        if self._sampler is not None:
            self._sampler.handed_over(message)
        diverted = machine.take_diverted(now_ns) if self._diverts else ()
        self._report.counts[READY] += message.rows + len(diverted)
        return Handed(
            message.batch,
            message.progress,
            taken=taken,
            released=released,
            diverted=diverted,
            tested=machine.left_out if machine.is_tested else None,
            must_leave=True,
        )

    def _take(self, now_ns: int, max_rows: int) -> Message | None:
        machine = self.machine
        if self.is_paced and machine.is_unread:
            has_rows = machine.read(now_ns)
            message = None if has_rows else machine.without_rows(now_ns)
            self._note_poll(now_ns, has_found=has_rows or message is not None)
            return message
        message = machine.take(now_ns, max_rows=max_rows)
        if self.is_paced:
            self.has_looked(now_ns)
        else:
            self._note_poll(now_ns, has_found=message is not None)
        return message

    def _note_poll(self, now_ns: int, *, has_found: bool) -> None:
        if self._is_live:
            self._turn_ns = now_ns
        if has_found:
            self._polled_ns, self._found_ns = None, now_ns
        else:
            self._polled_ns = self._caught_up_ns = now_ns

    @property
    def since_ns(self) -> int | None:
        """Time since which rows of its input wait.

        None if it is over, END_NS if none waits.
        """
        machine = self.machine
        if self.is_paced and (due_ns := machine.due_ns) is not None:
            return due_ns
        if machine.is_over:
            return None
        return END_NS if self.is_paced else self._caught_up_ns

    def count(self, report: StageReport, now_ns: int) -> None:  # noqa: D102 - see Node
        count_source(report, self.machine, now_ns)

    def waited_ns(self, now_ns: int) -> int:
        """Return the wait of its input's rows."""
        since_ns = self.since_ns
        return 0 if since_ns is None else max(now_ns - since_ns, 0)

    def open(self, now_ns: int) -> None:
        """Open the input and read its first block, before the start."""
        if self.machine.is_unread:  # nothing arrives before the start
            self.machine.read(max(now_ns, self.next_take_ns))

    def woken(self, now_ns: int) -> None:
        """Note that the input may have something.

        Rows of a live input count from now, or from its last slice: so they take turns with a
        backlog of another input, whose event times may be older.
        """
        if self._is_live and self._polled_ns is not None:
            self._turn_ns = now_ns
        self._polled_ns = None

    def has_looked(self, now_ns: int) -> None:
        """Note when a paced source takes rows again, having done so now."""
        self.next_take_ns = self.looks.look(now_ns)


def source_of(
    stage: Stage,
    step: SourceStep,
    report: StageReport,
    sampler: StageSampler | None,
    *,
    start_ns: int,
    looks: Looks,
) -> SourceNode:
    """Return the node of a source."""
    machine = SourceMachine(
        stage.name,
        step.source,
        step.schema,
        writer_id=stage.number,
        start_ns=start_ns,
        needed=stage.needed,
        teller=teller_of(stage, step),
        beginning_ns=None if stage.beginning is None else stage.beginning.arrival_ns,
    )
    return SourceNode(
        machine,
        report,
        sampler,
        spec=step.source,
        diverts=any(channel.diverted is not None for channel in stage.outputs),
        start_ns=start_ns,
        looks=looks,
    )
