"""Control loop of both hosts: samples of slots in, commands to slots out.

```
tick ──▶ Ask every slot ──▶ heard, unheard, gone ──▶ whole intervals ──▶ Decide ──▶ decided
  ▲        (a round: until all have answered, or its time is up)                       │
  └── WakeAt ◀──────────────────────────────────────────────────── Tell, numbered ◀────┘
```

A host carries actions out: it asks and tells slots, lets one or several deciders decide, which may
take seconds, and calls again when it was told to wake. Slots answer in any order, late or never; a
late answer counts when it arrives. The successor of a loop that died begins with that loop's state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from slackwater.runtime.control.commands import Command, SetRelease, Warn
from slackwater.runtime.control.deciders import Wanted, settled
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model.subject import Subject

Samples: TypeAlias = Mapping[Subject, StageSample]
"""{step: its sample of an interval}."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a slot for samples of past intervals; answer `heard`, `unheard` or `gone`."""

    slot: str


@dataclass(frozen=True, slots=True)
class Decide:
    """Show an interval to all deciders, then call `decided` with their commands."""

    interval: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a command, then call `note_sent`. Numbers order commands that overtake each other."""

    slot: str
    command: Command
    number: tuple[int, int]


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `tick` at this time. Only the last one counts."""

    at_ns: int


Action: TypeAlias = Ask | Decide | Tell | WakeAt


class Decider(Protocol):
    """Machine that turns samples of intervals into commands; no clock, no I/O."""

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    def begin(self) -> Sequence[Command]:
        """Return the commands to begin with."""
        ...

    def decide(self, interval: int, samples: Samples, /) -> Sequence[Command]:
        """Return commands at the end of an interval; each call has a later interval."""
        ...


def name_of(decider: object) -> str:
    """Return a decider's name in reports: its own, or that of its class."""
    return str(getattr(decider, "name", type(decider).__name__))


class Record(Protocol):
    """Record that collects samples into whole intervals, for deciders and reports."""

    def add(self, samples: Iterable[StageSample]) -> None:
        """Add samples, of any intervals."""
        ...

    def due(self, *, silent: Collection[Subject] = ()) -> Sequence[tuple[int, Samples]]:
        """Return intervals that are complete but for silent parts, once, ascending."""
        ...

    def was_set(self, setting: SetRelease) -> None:
        """Note a rule that was sent."""
        ...

    def warned(self, warning: Warn) -> None:
        """Note a warning."""
        ...

    def refused(self, why: str) -> None:
        """Note a command that a slot refused, or that another command ruled out."""
        ...

    def report(self, *, is_last: bool = False) -> TuningReport:
        """Return the report; without intervals that are not due yet, unless `is_last`."""
        ...


@dataclass
class LoopState:
    """State of a loop, as a successor needs it.

    Attributes:
        report: how the deadline was kept.
        samples: samples since the last question for this state.
        heard: number of all samples so far; pass it in the next question.
        prediction: predicted and measured latency; None if nothing was predicted.
    """

    report: TuningReport
    samples: list[StageSample] = field(default_factory=list)
    heard: int = 0
    prediction: PredictionReport | None = None


class ControlLoop:
    """Asks slots for samples, shows whole intervals to deciders, and sends their commands.

    Args:
        graph: graph of the flow; slots are asked once an interval.
        record: record of the run; only the loop changes it.
        keeps: number of samples kept, for a successor and for later jobs.
        lag_ns: slots are asked this long after an interval's end: their clocks differ a little.
        answer_ns: a slot that takes longer to answer is left out of a round; half an interval
            if None.
        turn: number of earlier loops of the job.
        before: state of the loop that this one succeeds.
    """

    def __init__(
        self,
        graph: FlowGraph,
        record: Record,
        *,
        keeps: int,
        lag_ns: int = 0,
        answer_ns: int | None = None,
        turn: int = 0,
        before: LoopState | None = None,
    ) -> None:
        self._record = record
        self._graph = graph
        interval_ns = self._interval_ns = graph.interval_ns
        self._lag_ns = lag_ns
        self._answer_ns = interval_ns // 2 if answer_ns is None else answer_ns
        # Between two rounds, however slow a decider is.
        self._least_ns = interval_ns // 10
        self._slots = dict.fromkeys(graph.slot_names)  # slots that are not gone, in order
        self._awaited: dict[str, None] = {}  # of these, slots that have not answered yet
        self._answered: set[str] = set()  # slots that answered in this round
        self._next_ns = 0  # end of the intervals that are counted now
        self._is_asking = self._is_deciding = self._is_over = False
        self._due: deque[tuple[int, Samples]] = deque()
        self._wanted: list[Command] = []
        self._turn, self._sent = turn, 0
        self._samples: deque[StageSample] = deque(maxlen=keeps)
        self._heard = 0
        if before is not None:
            self._take(before.samples)

    # -- what happens ---------------------------------------------------------------------------

    def begin(
        self, now_ns: int, wanted: Sequence[Wanted], *, left_ns: int | None = None
    ) -> list[Action]:
        """Begin once the slots run: send the first commands, ask after an interval.

        Args:
            now_ns: time by the host's clock.
            wanted: first commands of each decider, in order of precedence; rules that an earlier
                loop has set stay.
            left_ns: time until the first interval ends; None if that is a whole interval.
        """
        was_set = {gate.step for gate in self._record.report().gates if gate.by}
        self._next_ns = now_ns + (self._interval_ns if left_ns is None else left_ns)
        self._wanted += [
            command
            for command in self._settled(wanted)
            if not isinstance(command, SetRelease) or command.subject.step not in was_set
        ]
        return self._go_on(now_ns)

    def tick(self, now_ns: int) -> list[Action]:
        """Ask the slots, or close a round without those that have not answered."""
        if self._is_over or self._is_deciding:
            return []
        if self._is_asking:
            return self._close(now_ns)
        return self._ask(now_ns)

    def heard(
        self, slot: str, samples: Sequence[StageSample], now_ns: int, *, left_ns: int | None = None
    ) -> list[Action]:
        """Take a slot's answer; its current interval ends in `left_ns`."""
        self._take(samples)
        self._answered.add(slot)
        left_ns = self._interval_ns if left_ns is None else left_ns
        self._next_ns = max(self._next_ns, now_ns + left_ns)
        return self._has_answered(slot, now_ns)

    def unheard(self, slot: str, now_ns: int) -> list[Action]:
        """Note that a slot could not answer; the next round asks it again."""
        return self._has_answered(slot, now_ns)

    def gone(self, slot: str, now_ns: int) -> list[Action]:
        """Forget a slot that has died: it is neither awaited nor told anything."""
        self._slots.pop(slot, None)
        return self._has_answered(slot, now_ns)

    def decided(self, wanted: Sequence[Wanted], now_ns: int) -> list[Action]:
        """Take the commands of all deciders on the interval they were shown, in their order."""
        self._is_deciding = False
        self._wanted += self._settled(wanted)
        return self._go_on(now_ns)

    def note_sent(self, tell: Tell) -> None:
        """Record a command as sent: not before, as a successor does not send it again."""
        if isinstance(tell.command, SetRelease):
            self._record.was_set(tell.command)

    def refused(self, why: str) -> None:
        """Record that a slot could not carry out a command."""
        self._record.refused(why)

    def moved(self, graph: FlowGraph) -> None:
        """Use the slots of a new graph, from the next round on."""
        self._graph = graph
        self._slots |= dict.fromkeys(graph.slot_names)

    def end(self, now_ns: int) -> list[Action]:
        """Ask all slots a last time at the job's end; nothing more is decided."""
        self._is_over = True
        actions = self._ask(now_ns)
        return [action for action in actions if isinstance(action, Ask)]

    # -- what it knows --------------------------------------------------------------------------

    @property
    def is_asking(self) -> bool:
        """Whether a round is open: answers are awaited."""
        return self._is_asking

    @property
    def samples(self) -> list[StageSample]:
        """Samples that are kept."""
        return list(self._samples)

    def state(self, heard: int = 0, *, is_last: bool = False) -> LoopState:
        """Return the state, with the samples after the first `heard`."""
        new = min(self._heard - heard, len(self._samples))
        samples = list(self._samples)[len(self._samples) - new :] if new > 0 else []
        return LoopState(self._record.report(is_last=is_last), samples, self._heard)

    # -- a round --------------------------------------------------------------------------------

    def _take(self, samples: Sequence[StageSample]) -> None:
        self._record.add(samples)
        self._samples.extend(samples)
        self._heard += len(samples)

    def _ask(self, now_ns: int) -> list[Action]:
        new = [slot for slot in self._slots if slot not in self._awaited]
        self._awaited |= dict.fromkeys(new)
        self._answered.clear()
        self._next_ns, self._is_asking = 0, True
        if not self._awaited:
            return self._close(now_ns)
        return [*map(Ask, new), WakeAt(now_ns + self._answer_ns)]

    def _has_answered(self, slot: str, now_ns: int) -> list[Action]:
        self._awaited.pop(slot, None)
        is_last = self._is_asking and not self._awaited
        return self._close(now_ns) if is_last else []

    def _close(self, now_ns: int) -> list[Action]:
        self._is_asking = False
        if self._is_over:
            return []
        if not self._answered:
            self._next_ns = now_ns + self._interval_ns
        silent = {s for s, slot, _ in self._graph.parts if slot not in self._answered}
        self._due.extend(self._record.due(silent=silent))
        return self._go_on(now_ns)

    def _go_on(self, now_ns: int) -> list[Action]:
        """Decide on the next whole interval; without one, send commands and wait."""
        if self._is_over:
            return []
        if self._due:
            self._is_deciding = True
            return [Decide(*self._due.popleft())]
        tells = self._tells()
        return [*tells, WakeAt(max(self._next_ns + self._lag_ns, now_ns + self._least_ns))]

    def _settled(self, wanted: Sequence[Wanted]) -> list[Command]:
        commands, refused = settled(wanted)
        for why in refused:
            self._record.refused(why)
        return commands

    def _tells(self) -> list[Tell]:
        wanted, self._wanted = self._wanted, []
        newest: dict[tuple[str, Subject], Command] = {}  # the last of each kind and subject
        for command in wanted:
            if isinstance(command, Warn):
                self._record.warned(command)
            else:
                newest[type(command).__name__, command.subject] = command
        tells = []
        for command in newest.values():
            for part, slot, _ in self._graph.parts_for(command):
                if slot in self._slots:
                    self._sent += 1
                    own = replace(command, subject=part)
                    tells.append(Tell(slot, own, (self._turn, self._sent)))
        return tells
