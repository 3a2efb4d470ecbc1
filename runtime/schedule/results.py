"""Results at the sinks of a slot: actions on them, and when they left.

```
Egress ──▶ SlotResults ──▶ Egress ── wrote ──▶ latency, and when it must be committed
  a part is full ────────▶ Flush, Commit
  its last one ──────────▶ End … Close: a sink settles at its own end of stream, whatever still runs
time ────────────────────▶ Flush, Commit
the slot's end ──────────▶ Flush, Commit, Close, or Abort, of the sinks that are still open

a sink that holds:  Egress ─▶ held ── cut(n), complete(n) ──▶ as above
```

Pure, and the same in both hosts; a host has the sinks themselves (`SinkPort`) and the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from slackwater.runtime.errors import SinkError, SlackwaterError
from slackwater.runtime.measure.assemble import SinkMeter
from slackwater.runtime.measure.report import SinkReport
from slackwater.runtime.model import Batch
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.plan.steps import sinks_among
from slackwater.runtime.schedule.actions import Egress, Rest
from slackwater.runtime.schedule.held_rows import HeldRows
from slackwater.runtime.schedule.slot import Slot
from slackwater.runtime.sinks.output import SinkTraits
from slackwater.runtime.sinks.rolling import RollingPolicy

__all__ = [
    "Abort",
    "Close",
    "Commit",
    "End",
    "Flush",
    "SinkAction",
    "SinkPort",
    "Skip",
    "SlotResults",
    "carry_out",
    "rest_of",
]


class End(NamedTuple):
    """Tell a sink that its stream has ended."""

    sink: str


class Skip(NamedTuple):
    """Count rows that a sink has from before a recovery of this run."""

    sink: str
    batch: Batch


class Flush(NamedTuple):
    """Make a sink's rows whole; answered by `flushed`."""

    sink: str


class Commit(NamedTuple):
    """Publish what a sink has flushed."""

    sink: str


class Close(NamedTuple):
    """Close a sink; answered by `settled`."""

    sink: str


class Abort(NamedTuple):
    """Abort a sink after a failure; answered by `settled`."""

    sink: str
    error: str


SinkAction: TypeAlias = Egress | Skip | End | Flush | Commit | Close | Abort


class SinkPort(Protocol):
    """Sinks of a host, each driven as `Sink` says. A SlackwaterError means that one failed."""

    @property
    def clock_ns(self) -> Callable[[], int]:
        """Clock for rows that are due; it does not run back."""
        ...

    def begin(self) -> Mapping[str, int]:
        """Get all sinks ready, in the thread that writes.

        Returns:
            {sink: ordinal of the last row that it has, -1 before the first}, of sinks that say it.
        """
        ...

    def write(self, sink: str, batch: Batch, first_ordinal: int) -> None:
        """Write results. They have left the flow when this returns."""
        ...

    def end(self, sink: str) -> None:
        """Tell a sink that its stream has ended."""
        ...

    def flush(self, sink: str) -> None:
        """Make a sink's rows whole."""
        ...

    def commit(self, sink: str) -> None:
        """Publish what a sink has flushed."""
        ...

    def close(self, sink: str) -> None:
        """Close a sink."""
        ...

    def abort(self, sink: str, error: str) -> None:
        """Abort a sink; what that raises is told beside the failure."""
        ...


_GOES_ON = "the job was stopped; the same flow goes on from its newest checkpoint"


class SlotResults:
    """Decides what is done at the sinks of one slot.

    Args:
        sinks: {sink of the slot: traits of its output}.
        deadline_ns: deadline of the flow; None if it has none.
        holds: sinks whose rows, and end of stream, wait for the checkpoint that contains them;
            those of other slots are passed over.
        goes_on: whether the job takes checkpoints, and goes on from the last after a stop.

    Attributes:
        holds: the same, of this slot alone.
    """

    STATE = Fields("_meters", "_open", "_parts", "_committed", "_earlier", "_held")

    def __init__(
        self,
        sinks: Mapping[str, SinkTraits],
        *,
        deadline_ns: int | None = None,
        holds: Collection[str] = (),
        goes_on: bool = False,
    ) -> None:
        self._traits, self._goes_on = sinks, goes_on
        self.holds = frozenset(holds) & sinks.keys()
        self._held = {sink: HeldRows() for sink in sinks if sink in self.holds}
        self._meters = {sink: SinkMeter(sink, "", deadline_ns=deadline_ns) for sink in sinks}
        self._open = dict.fromkeys(self._meters)  # in order
        self._parts = {
            sink: RollingPolicy(traits)
            for sink, traits in sinks.items()
            if traits.rows is not None or traits.every_ns is not None
        }
        self._committed: dict[str, int] = {}  # {sink: last ordinal}, where rows are yet to come
        self._earlier: dict[str, int] = {}  # {sink: rows that it had as this run began}
        self.due_ns: int | None = None
        """When `due` has something to do, if nothing is written; None if at no time."""

    @classmethod
    def of(cls, plan: SlotPlan) -> SlotResults:
        """Return the results of a slot's sinks, as its plan says."""
        sinks = sinks_among(stage.step for stage in plan.stages)
        return cls(
            {step.name: step.output.traits for step in sinks},
            deadline_ns=plan.deadline_ns,
            holds=plan.holds,
            goes_on=plan.has_checkpoints,
        )

    @property
    def open(self) -> tuple[str, ...]:
        """The sinks that have not been closed or aborted."""
        return tuple(self._open)

    @property
    def awaits(self) -> bool:
        """Whether rows or an end wait for a checkpoint.

        A finished slot goes on until they do not. Once all slots that live are finished, one
        checkpoint more releases all that waits.
        """
        held = [self._held[sink] for sink in self._open if sink in self._held]
        return any(own.has_ended or own.rows for own in held)

    def resumes(self, committed: Mapping[str, int], *, recovers: bool = False) -> None:
        """Skip rows that sinks have from before. Of a checkpoint: after the restore.

        Args:
            committed: {sink: ordinal of the last row that it has}, -1 if it has no row; a sink that
                does not say it is omitted.
            recovers: whether the run goes on after a failure of its own. Then rows beyond those
                with which it began are its own. Before its first checkpoint all are.

        Raises:
            SinkError: a sink has fewer rows than it had been given at the checkpoint.
        """
        for part in self._parts.values():
            part.is_restored()
        self._find_due()
        for sink in self._open:
            if sink not in committed:
                continue
            self._committed.pop(sink, None)
            has, had = committed[sink] + 1, self.next_ordinal(sink)
            if not recovers:
                self._earlier[sink] = has
            if has < had:
                raise SinkError(
                    f"sink {sink!r}: it has {has:,} rows, and had been given {had:,} at the "
                    "checkpoint; an older checkpoint restored, and a sink that skips by number "
                    "alone loses data; bring its rows back, or start the flow from its beginning "
                    "with an empty sink"
                )
            if has > had:
                self._committed[sink] = committed[sink]

    def next_ordinal(self, sink: str) -> int:
        """Return the ordinal of the row that a sink is given next."""
        return self._meters[sink].next_ordinal

    def leaves(self, egress: Egress) -> list[SinkAction]:
        """Return what to do with what leaves; nothing yet if the sink holds it.

        Raises:
            SinkError: the stream has ended before the rows that an earlier run committed.
        """
        if egress.stage in self._held:
            self._held[egress.stage].add(egress.batch, egress.is_end)
            return []
        return self._written(egress)

    def cut(self, number: int) -> None:
        """Note what belongs to a checkpoint; `saved_results` (runtime/recovery) does it."""
        for held in self._held.values():
            held.cut(number)

    def complete(self, number: int) -> list[SinkAction]:
        """Return what to do once a checkpoint is complete: its rows and ends leave.

        After a restore, and `resumes`, the number of that checkpoint releases all that is held.

        Args:
            number: number of the checkpoint; those before it count as complete.

        Raises:
            SinkError: the stream has ended before the rows that an earlier run committed.
        """
        done: list[SinkAction] = []
        for sink, held in self._held.items():
            batches, has_ended = held.release(number)
            if sink in self._open:
                for batch in batches:
                    done += self._written(Egress(sink, batch, False))
                if has_ended:
                    done += self._written(Egress(sink, None, True))
        return done

    def _written(self, egress: Egress) -> list[SinkAction]:
        sink, batch, is_end = egress
        done: list[SinkAction] = []
        if batch is not None:
            if sink in self._committed:
                done, batch = self._skipped(sink, batch)
            if batch is None:
                pass
            elif sink in self._parts:
                done += self._in_parts(sink, batch)
            else:
                done.append(egress if batch is egress.batch else Egress(sink, batch, False))
        if is_end and sink in self._open:
            done += self._done(sink)
        return done

    def _skipped(self, sink: str, batch: Batch) -> tuple[list[SinkAction], Batch | None]:
        """Divide rows into those that the sink has and new ones, if any."""
        rows, first, meter = len(batch), self.next_ordinal(sink), self._meters[sink]
        left = self._committed[sink] + 1 - first
        has = min(left, rows)
        of_earlier_run = min(max(self._earlier.get(sink, 0) - first, 0), has)
        meter.skip(of_earlier_run)
        done: list[SinkAction] = []
        if of_earlier_run < has:
            meter.pass_over(has - of_earlier_run)
            done.append(Skip(sink, batch.slice(of_earlier_run, has)))
        if left > rows:
            return done, None
        del self._committed[sink]
        if sink in self._parts:  # a part ends with the last row that was committed
            self._parts[sink].cut_short()
            self._parts[sink].flushed()
            self._find_due()
        return done, batch.slice(left, rows) if left < rows else None

    def _in_parts(self, sink: str, batch: Batch) -> list[SinkAction]:
        done: list[SinkAction] = []
        start, rows = 0, len(batch)
        while start < rows:
            fit, is_full = self._parts[sink].take(rows - start)
            piece = batch if fit == rows else batch.slice(start, start + fit)
            done.append(Egress(sink, piece, False))
            start += fit
            if is_full:
                done += self._part_ends(sink)
        return done

    def _part_ends(self, sink: str) -> list[SinkAction]:
        return [Flush(sink)] if self._traits[sink].only_whole else [Flush(sink), Commit(sink)]

    def _done(self, sink: str) -> list[SinkAction]:
        if sink not in self._committed:
            return [End(sink), Flush(sink), Commit(sink), Close(sink)]
        gave, last = f"the flow gave {self.next_ordinal(sink):,} rows", self._committed[sink]
        if self._traits[sink].files is not None:
            raise SinkError(
                f"sink {sink!r}: {gave}, and an earlier run of the same flow committed "
                f"{last + 1:,}; a function of the flow gives other results each time; write to "
                "another place, or replace what is there (overwrite=True)"
            )
        raise SinkError(
            f"sink {sink!r}: {gave}, and its last_ordinal() is {last:,}, counted from 0; the rows "
            "there are of another flow, or a function of this one gives other results each time; "
            "return the ordinal of the last row that a run with this fingerprint committed"
        )

    def is_timed(self, sink: str) -> bool:
        """Whether `wrote` must tell the time of the sinks' clock."""
        return sink in self._parts and self._parts[sink].is_timed

    def wrote(self, egress: Egress, egress_ns: int, *, at_ns: int | None = None) -> None:
        """Take note that results have left.

        Args:
            egress: results that a sink wrote.
            egress_ns: time of their egress.
            at_ns: the same by the sinks' clock; None if the sink is not timed.
        """
        assert egress.batch is not None, "only rows are written"
        self._meters[egress.stage].add(egress.batch, egress_ns)
        if at_ns is not None:
            self._parts[egress.stage].wrote(at_ns)
            self._find_due()

    def skipped(self, skip: Skip) -> None:
        """Take note that rows came again which the sink has."""
        self._meters[skip.sink].came_again(skip.batch)

    def due(self, now_ns: int) -> list[SinkAction]:
        """Return what must be done by now, by the sinks' clock."""
        if self.due_ns is None or now_ns < self.due_ns:
            return []
        done: list[SinkAction] = []
        for sink in self._open:
            part = self._parts.get(sink)
            if part is not None and part.due_ns is not None and part.due_ns <= now_ns:
                part.cut_short()
                done += self._part_ends(sink)
        return done

    def flushed(self, sink: str) -> None:
        """Take note that a sink has been flushed."""
        if sink in self._parts:
            self._parts[sink].flushed()
            self._find_due()

    def ends(self, state: str, failure: str | None = None) -> list[SinkAction]:
        """The slot ends: return how its sinks do that still are open.

        What a sink still holds is not written: no checkpoint contains it. So a slot is "done" when
        nothing `awaits`, and the user's stop follows a last checkpoint.

        Args:
            state: "done", "stopped" or "failed".
            failure: reason why the slot or the job has failed; None if neither has.
        """
        if failure is not None:
            return [Abort(sink, failure) for sink in self._open]
        done: list[SinkAction] = []
        for sink in self._open:
            if state == "done":
                assert sink not in self._held, f"sink {sink!r} holds its end"
                done += self._done(sink)
            elif self._goes_on and self._is_single_file(sink):
                done.append(Abort(sink, _GOES_ON))  # a file that readers see never changes
            elif self._traits[sink].only_whole:
                done.append(Close(sink))
            else:
                done += [Flush(sink), Commit(sink), Close(sink)]
        return done

    def _is_single_file(self, sink: str) -> bool:
        place = self._traits[sink].files
        return place is not None and place.is_file

    def settled(self, sink: str) -> None:
        """Take note that a sink is closed or aborted."""
        self._open.pop(sink, None)
        self._committed.pop(sink, None)
        self._find_due()

    def reports(self) -> list[SinkReport]:
        """Return the sinks' reports as they stand; they go on to be counted in."""
        reports = [meter.report for meter in self._meters.values()]
        for report in reports:
            report.held = self._held[report.name].rows if report.name in self._held else 0
        return reports

    def _find_due(self) -> None:
        dues = (self._parts[sink].due_ns for sink in self._open if sink in self._parts)
        self.due_ns = min((due_ns for due_ns in dues if due_ns is not None), default=None)

    def derive(self) -> None:
        """Find when the first sink is due."""
        self._find_due()


def rest_of(slot: Slot, results: SlotResults, now_ns: int, *, sinks_ns: Callable[[], int]) -> Rest:
    """Return how long a slot without work may sleep; its sinks may be due before.

    Args:
        slot: slot that may rest.
        results: results of its sinks.
        now_ns: time by the slot's clock.
        sinks_ns: the sinks' clock, which is not read if none will be due.
    """
    rest = slot.rest(now_ns)
    if results.due_ns is None:
        return rest
    due_ns = now_ns + max(results.due_ns - sinks_ns(), 0)
    if rest.until_ns is not None and rest.until_ns <= due_ns:
        return rest
    return Rest(due_ns, is_guess=False)


def carry_out(
    actions: Iterable[SinkAction],
    results: SlotResults,
    sinks: SinkPort,
    clock_ns: Callable[[], int],
) -> str:
    """Carry out actions at a host's sinks, and tell their machine the results.

    Args:
        actions: actions that `results` returned.
        results: machine of the results.
        sinks: sinks of the host.
        clock_ns: time of egress by the clock.

    Returns:
        What went wrong after a failure, to be told with it; "" if nothing did.

    Raises:
        SlackwaterError: a sink could not do it. It is still open: the slot ends as failed, and
            aborts it.
    """
    problems = ""
    for action in actions:
        match action:
            case Egress(sink, batch):
                assert batch is not None, "an end of stream is a list of actions"
                sinks.write(sink, batch, results.next_ordinal(sink))
                at_ns = sinks.clock_ns() if results.is_timed(sink) else None
                results.wrote(action, clock_ns(), at_ns=at_ns)
            case Skip():
                results.skipped(action)
            case End(sink):
                sinks.end(sink)
            case Flush(sink):
                sinks.flush(sink)
                results.flushed(sink)
            case Commit(sink):
                sinks.commit(sink)
            case Close(sink):
                sinks.close(sink)
                results.settled(sink)
            case Abort(sink, error):
                results.settled(sink)
                problems += _aborted(sinks, sink, error)
    return problems


def _aborted(sinks: SinkPort, sink: str, error: str) -> str:
    try:
        sinks.abort(sink, error)
    except SlackwaterError as problem:
        return f"\nand then: {problem}"
    except BaseException as problem:  # sys.exit() in at_end: the slot must end nevertheless
        return f"\nand then: sink {sink!r}: {problem!r}"
    return ""
