"""Log of a slot: all that it was given, from which the slot is replayed.

```
host ──▶ deliver · credit · step · charge · apply · rest ──▶ LoggedSlot ──▶ actions
                     reads of its sources ──▶ │
                                            log ──▶ replay ──▶ the same actions
```

What its sources read is in the log, too: an input of a user's own, or one that is pushed, does not
give the same blocks again. So a log needs neither the input nor the other slots. A slot without a
log is a plain `Slot`, and pays nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Any

from slackwater.runtime.config import Limits
from slackwater.runtime.control.commands import Command, SetRelease, Shed
from slackwater.runtime.errors import IngestError, SettingError, SlackwaterError
from slackwater.runtime.measure.report import ChannelReport, StageReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.model import Message, ReleaseRule
from slackwater.runtime.model.arrow_streams import block_of, stream_of
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.schedule.actions import Slice
from slackwater.runtime.schedule.slot import Slot
from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.named_reader import NamedReader
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    EndOfInput,
    Input,
    InputTraits,
)

__all__ = ["LoggedSlot", "give", "make_slot", "replay", "replaying"]

VERSION = 12
"""Of a log; another one whenever what is in it changes its meaning."""

Entry = tuple[Any, ...]
"""What a slot was given: the name of it, then plain values."""


def make_slot(plan: SlotPlan, *, start_ns: int) -> Slot:
    """Return a slot for a host: one with a log if `Limits.log` wants it."""
    return (LoggedSlot if plan.limits.log else Slot).of(plan, start_ns=start_ns)


class LoggedSlot(Slot):
    """A slot that keeps the last `Limits.log` stimuli whole."""

    def __init__(
        self, name: str, stages: Sequence[Stage], *, limits: Limits, **settings: Any
    ) -> None:
        self._log: deque[Entry] = deque(maxlen=limits.log)
        self._given, self._was_restored = 0, False
        super().__init__(
            name, [_logged(stage, self) for stage in stages], limits=limits, **settings
        )

    def note(self, *entry: Any) -> None:
        """Put a stimulus into the log."""
        self._given += 1
        self._log.append(entry)

    def log(self) -> dict[str, Any]:
        """Return the log: its slot, the number of lost stimuli, the rest in order."""
        return {
            "version": VERSION,
            "slot": self.name,
            "lost": self._given - len(self._log),
            "restored": self._was_restored,
            "stimuli": list(self._log),
        }

    def restore(self, state: dict[str, Any], old: Slot | None = None) -> None:
        """Continue from a snapshot; what is logged from then on replays nothing by itself."""
        self._was_restored = True
        super().restore(state, old)

    def deliver(self, channel: str, message: Message, now_ns: int, *, link_ns: int = 0) -> None:
        """Take a message from another slot, where it was sent `link_ns` ago."""
        self.note("deliver", channel, to_plain(message), now_ns, link_ns)
        super().deliver(channel, message, now_ns, link_ns=link_ns)

    def credit(self, channel: str, rows: int) -> None:
        """Take credit that the other end has granted."""
        self.note("credit", channel, rows)
        super().credit(channel, rows)

    def step(self, now_ns: int) -> Slice | None:
        """Do the most urgent slice of work now; return None if no stage may run."""
        self.note("step", now_ns)
        return super().step(now_ns)

    def charge(self, done: Slice, took_ns: int) -> None:
        """Tell how long a slice took."""
        if not done.each:  # else each part is charged by itself
            self.note("charge", done.stage, done.released, done.began_ns, took_ns, done.has_read)
        super().charge(done, took_ns)

    def charge_reading(self, source: str, took_ns: int) -> None:
        """Charge a source for what was read in a thread."""
        self.note("charge_reading", source, took_ns)
        super().charge_reading(source, took_ns)

    def apply(self, command: Command, *, number: tuple[int, ...] = ()) -> None:
        """Carry out a command; a refused one changes nothing, and is not a stimulus."""
        super().apply(command, number=number)
        if isinstance(command, Shed):
            self.note("shed", tuple(command.subject), command.rest_ns, command.by, number)
            return
        assert isinstance(command, SetRelease), "no other is carried out"
        trials = [(trial.name, trial.rule.to_json()) for trial in command.trials]
        rule, subject = command.rule.to_json(), tuple(command.subject)
        self.note("apply", subject, rule, command.by, trials, number)

    def open(self, now_ns: int) -> None:
        """Open the inputs and read their first blocks."""
        self.note("open", now_ns)
        super().open(now_ns)

    def woken(self, now_ns: int) -> None:
        """Poll the inputs again that wake the slot."""
        self.note("woken", now_ns)
        super().woken(now_ns)

    def samples(self, now_ns: int) -> list[StageSample]:
        """Return samples, once."""
        self.note("samples", now_ns)
        return super().samples(now_ns)

    def reports(self, now_ns: int) -> tuple[list[StageReport], list[ChannelReport]]:
        """Return the counters; up to now is counted how long rows have waited."""
        self.note("reports", now_ns)
        return super().reports(now_ns)


def replaying(stages: Sequence[Stage], log: Mapping[str, Any]) -> list[Stage]:
    """Return the stages of a slot with sources that read what is in its log.

    Raises:
        SettingError: it is not a whole log of this release.
    """
    if log["version"] != VERSION:
        raise SettingError(
            f"the log of slot {log['slot']!r} is of version {log['version']!r}, and this release "
            f"reads version {VERSION}; replay it with the release that made it"
        )
    if log["restored"]:
        raise SettingError(
            f"the log of slot {log['slot']!r} begins after a restore, and a log replays from the "
            "start of its slot only; keep the log of the slot that the snapshot was of"
        )
    if log["lost"]:
        raise SettingError(
            f"the log of slot {log['slot']!r} lacks its first {log['lost']:,} stimuli, without "
            f"which none can be replayed; run it again with Limits(log=…) above "
            f"{log['lost'] + len(log['stimuli']):,}"
        )
    return [_with_input(stage, lambda reader: _LoggedReads(reader, log)) for stage in stages]


def replay(slot: Slot, log: Mapping[str, Any]) -> list[Slice | None]:
    """Give a new slot, made of `replaying(stages, log)`, what another one was given.

    Returns:
        What came of each step, in order.

    Raises:
        SlackwaterError: what the other slot has failed with, at the same place.
    """
    return [
        came for stimulus in log["stimuli"] for came in _steps(stimulus[0], give(slot, stimulus))
    ]


def _steps(what: str, came: Any) -> list[Slice | None]:
    return [came] if what == "step" else []


def give(slot: Slot, stimulus: Sequence[Any]) -> Any:
    """Give a slot one stimulus of a log; return what came of it."""
    what, *of = stimulus
    match what:
        case "deliver":
            channel, message, now_ns, link_ns = of
            slot.deliver(channel, from_plain(message), now_ns, link_ns=link_ns)
        case "charge":
            stage, released, began_ns, took_ns, has_read = of
            done = Slice(stage, 0, [], began_ns, released=released, has_read=has_read)
            slot.charge(done, took_ns)
        case "apply":
            slot.apply(_command(*of[:-1]), number=tuple(of[-1]))
        case "shed":
            subject, rest_ns, by, number = of
            slot.apply(Shed(Subject(*subject), rest_ns, by), number=tuple(number))
        case "credit" | "step" | "open" | "woken" | "charge_reading" | "samples" | "reports":
            return getattr(slot, what)(*of)
    return None  # a read: the source does it by itself


def _command(subject: Sequence[Any], rule: Any, by: str, trials: Any) -> SetRelease:
    tried = tuple(Trial(name, ReleaseRule.from_json(own)) for name, own in trials)
    return SetRelease(Subject(*subject), ReleaseRule.from_json(rule), by, tried)


# -- what sources read -----------------------------------------------------------------------


def _logged(stage: Stage, slot: LoggedSlot) -> Stage:
    return _with_input(stage, lambda reader: _LoggingInput(reader, slot))


def _with_input(stage: Stage, change: Any) -> Stage:
    if not isinstance(stage.step, SourceStep):
        return stage
    spec = replace(stage.step.source, input=change(stage))
    return replace(stage, step=replace(stage.step, source=spec))


class _Stands(InputAround):
    """In for the input of a stage's source, and says of itself what that says."""

    def __init__(self, stage: Stage) -> None:
        assert isinstance(stage.step, SourceStep), "others read nothing"
        spec = stage.step.source
        self.source, self.inner = stage.name, spec.input
        self.first_row = getattr(spec.input, "first_row", None)

    @property
    def traits(self) -> InputTraits:
        return replace(
            super().traits,
            shows_first_rows=self.first_row is not None,
            blocks_stay=True,  # they are copies, or made of bytes
        )


class _LoggingInput(_Stands):
    """Another input, of which all that is read is put into a log."""

    def __init__(self, stage: Stage, slot: LoggedSlot) -> None:
        super().__init__(stage)
        self._slot = slot

    def open(self, name: str = "", at: bytes | None = None) -> _LoggingReader:
        return _LoggingReader(self.source, self.inner, self._slot, at, name)


class _LoggingReader:
    def __init__(
        self, source: str, own: Input, slot: LoggedSlot, at: bytes | None, name: str
    ) -> None:
        self._source, self._slot, self._name = source, slot, name
        try:
            # So that errors name the user's own class.
            self._reader = NamedReader(source, own, at, name)
        except SlackwaterError as problem:
            slot.note("read", source, name, "error", str(problem))
            raise

    def poll(self) -> Block | EndOfInput | None:
        try:
            polled = self._reader.poll()
        except SlackwaterError as problem:
            self._slot.note("read", self._source, self._name, "error", str(problem))
            raise
        if polled is None or isinstance(polled, EndOfInput):
            self._slot.note(
                "read", self._source, self._name, "none" if polled is None else "end", None
            )
        elif isinstance(polled.rows, BadRows):
            self._slot.note(
                "read",
                self._source,
                self._name,
                "bad",
                (bytes(stream_of(polled.rows.rows)), polled.at),
            )
        else:
            self._slot.note(
                "read",
                self._source,
                self._name,
                "block",
                (bytes(stream_of(polled.rows)), polled.at),
            )
        return polled

    def ack(self, at: bytes) -> None:
        self._reader.ack(at)

    def close(self) -> None:
        self._reader.close()


class _LoggedReads(_Stands):
    """An input that gives what a log says was read of it."""

    def __init__(self, stage: Stage, log: Mapping[str, Any]) -> None:
        super().__init__(stage)
        self._log = log

    def open(self, name: str = "", at: bytes | None = None) -> _LoggedReader:
        own = ("read", self.source, name)
        reads = [stimulus[3:] for stimulus in self._log["stimuli"] if stimulus[:3] == own]
        if at is not None:
            reads = list(dropwhile(lambda read: not _is_at(read, at), reads))
        return _LoggedReader(reads)


class _LoggedReader:
    def __init__(self, reads: Iterable[Sequence[Any]]) -> None:
        self._reads = deque(reads)
        if self._reads and self._reads[0][0] == "error":
            self.poll()  # it could not even be opened, or read: the same to who reads

    def poll(self) -> Block | EndOfInput | None:
        if not self._reads:
            return None  # the other slot has read no further
        what, of = self._reads.popleft()
        if what == "error":
            raise IngestError(of)
        if what == "end":
            return END_OF_INPUT
        if what == "none":
            return None
        rows, at = block_of(of[0]), of[1]
        return Block(BadRows(rows) if what == "bad" else rows, at)

    def close(self) -> None:
        """Nothing is open."""


def _is_at(read: Sequence[Any], at: bytes) -> bool:
    """Whether a read returned the block of a position."""
    what, of = read
    return what in ("block", "bad") and of[1] == at
