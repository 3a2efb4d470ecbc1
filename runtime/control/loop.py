"""The control loop: samples of slots in, commands to slots out. One machine for both hosts.

```
tick ──▶ Ask every slot ──▶ heard, unheard, gone ──▶ whole intervals ──▶ Decide ──▶ decided
  ▲        (a round: until all have answered, or its time is up)                       │
  └── WakeAt ◀──────────────────────────────────────────────────── Tell, numbered ◀────┘
```

A host carries: it asks and tells slots, lets deciders decide, one or several, which may take
seconds, and calls again when it was told to wake. Slots answer in any order, late or never; what
comes late counts when it comes. Who takes the place of a loop that died begins with what that one
knew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from slackwater.runtime.control.commands import Command, SetRelease, Warn
from slackwater.runtime.control.deciders import Wanted, settled
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import TuningReport

Samples: TypeAlias = Mapping[str, StageSample]
"""{stage: what it did in an interval}."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a slot for the samples of the intervals that are over: `heard`, `unheard` or `gone`."""

    slot: str


@dataclass(frozen=True, slots=True)
class Decide:
    """Show an interval to all deciders, then call `decided` with what each wants."""

    interval: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a command, then call `told`. A slot goes by the number if commands overtake."""

    slot: str
    command: Command
    number: tuple[int, int]


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `tick` then. Only the last one counts."""

    at_ns: int


Action: TypeAlias = Ask | Decide | Tell | WakeAt


class Decider(Protocol):
    """What is shown intervals, and says what it wants. A machine: no clock, no I/O."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def begin(self) -> Sequence[Command]:
        """Return what to begin with."""
        ...

    def decide(self, interval: int, samples: Samples, /) -> Sequence[Command]:
        """Return what is to change now that an interval is over; each call has a later one."""
        ...


def name_of(decider: object) -> str:
    """Return what reports call a decider: its name, or that of its class."""
    return str(getattr(decider, "name", type(decider).__name__))


class Record(Protocol):
    """What makes whole intervals of samples, and keeps what reports say of them."""

    def add(self, samples: Iterable[StageSample]) -> None:
        """Take samples, of any intervals."""
        ...

    def due(self, *, silent: Collection[str] = ()) -> Sequence[tuple[int, Samples]]:
        """Return the intervals that are whole but for silent stages, once, ascending."""
        ...

    def was_set(self, setting: SetRelease) -> None:
        """Take note of a rule that was sent."""
        ...

    def warned(self, warning: Warn) -> None:
        """Take note of a warning."""
        ...

    def refused(self, why: str) -> None:
        """Take note of a command that a slot could not carry out, or that another one ruled out."""
        ...

    def report(self, *, is_last: bool = False) -> TuningReport:
        """Return what is known; of the last intervals only what was due, unless `is_last`."""
        ...


@dataclass
class LoopState:
    """What a loop knows, and what another one in its place must.

    Attributes:
        report: how the deadline was kept.
        samples: what it has heard since it was last asked.
        heard: how many samples it has heard in all: say so when asking for the next ones.
        prediction: what was predicted and what became of it; None: nothing was.
    """

    report: TuningReport
    samples: list[StageSample] = field(default_factory=list)
    heard: int = 0
    prediction: PredictionReport | None = None


class ControlLoop:
    """Asks slots, makes whole intervals of what they say, and tells them what was decided.

    Args:
        graph: of the flow; slots are asked as often as its interval ends.
        record: of the run; the loop alone touches it.
        keeps: how many samples are kept, for a successor and for later jobs.
        lag_ns: how long after the end of an interval they are asked: their clocks differ a little.
        answer_ns: who takes longer to answer is left out of a round; None: half an interval.
        turn: how many loops the job had before this one.
        before: what the one in whose place this one is knew.
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
        self._slot_of = dict(graph.slots)
        interval_ns = self._interval_ns = graph.interval_ns
        self._lag_ns = lag_ns
        self._answer_ns = interval_ns // 2 if answer_ns is None else answer_ns
        # Between two rounds, however slow a decider is.
        self._least_ns = interval_ns // 10
        self._slots = dict.fromkeys(graph.slot_names)  # those that are not gone, in order
        self._asked: dict[str, None] = {}  # those of them that have not answered yet
        self._answered: set[str] = set()  # in this round
        self._next_ns = 0  # when the intervals end that are counted now
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
        """The slots run: tell them what to begin with, and ask once an interval is over.

        Args:
            now_ns: by the host's clock.
            wanted: what each decider wants to begin with, the one whose word prevails first; what
                a loop before this one has set stays.
            left_ns: until the first interval ends; None: all of it.
        """
        was_set = {gate.stage for gate in self._record.report().gates if gate.by}
        self._next_ns = now_ns + (self._interval_ns if left_ns is None else left_ns)
        self._wanted += [
            one
            for one in self._settled(wanted)
            if not isinstance(one, SetRelease) or one.stage not in was_set
        ]
        return self._go_on(now_ns)

    def tick(self, now_ns: int) -> list[Action]:
        """The time has come to ask, or to go on without those who have not answered."""
        if self._is_over or self._is_deciding:
            return []
        if self._is_asking:
            return self._close(now_ns)
        return self._ask(now_ns)

    def heard(
        self, slot: str, samples: Sequence[StageSample], now_ns: int, *, left_ns: int | None = None
    ) -> list[Action]:
        """A slot has answered; `left_ns` is left until the end of the interval it counts now."""
        self._take(samples)
        self._answered.add(slot)
        left_ns = self._interval_ns if left_ns is None else left_ns
        self._next_ns = max(self._next_ns, now_ns + left_ns)
        return self._has_answered(slot, now_ns)

    def unheard(self, slot: str, now_ns: int) -> list[Action]:
        """A slot could not answer; it will be asked again in the next round."""
        return self._has_answered(slot, now_ns)

    def gone(self, slot: str, now_ns: int) -> list[Action]:
        """A slot has died: nobody waits for it any more, and it is told nothing."""
        self._slots.pop(slot, None)
        return self._has_answered(slot, now_ns)

    def decided(self, wanted: Sequence[Wanted], now_ns: int) -> list[Action]:
        """All deciders have decided on the interval that they were shown, in their order."""
        self._is_deciding = False
        self._wanted += self._settled(wanted)
        return self._go_on(now_ns)

    def told(self, tell: Tell) -> None:
        """A command was sent: only now, for who comes after us does not set again what was set."""
        if isinstance(tell.command, SetRelease):
            self._record.was_set(tell.command)

    def refused(self, why: str) -> None:
        """A slot could not carry a command out."""
        self._record.refused(why)

    def moved(self, graph: FlowGraph) -> None:
        """Stages go on in other slots: those are told, and asked from the next round on."""
        self._slot_of = dict(graph.slots)
        self._slots |= dict.fromkeys(graph.slot_names)

    def end(self, now_ns: int) -> list[Action]:
        """The job has ended: ask all for a last time; nothing more is decided or told."""
        self._is_over = True
        asked = self._ask(now_ns)
        return [one for one in asked if isinstance(one, Ask)]

    # -- what it knows --------------------------------------------------------------------------

    @property
    def is_asking(self) -> bool:
        """Whether a round is open: answers are waited for."""
        return self._is_asking

    @property
    def samples(self) -> list[StageSample]:
        """The samples that are kept."""
        return list(self._samples)

    def state(self, known: int = 0, *, is_last: bool = False) -> LoopState:
        """Return what is known now; of samples those behind the first `known`."""
        new = min(self._heard - known, len(self._samples))
        samples = list(self._samples)[len(self._samples) - new :] if new > 0 else []
        return LoopState(self._record.report(is_last=is_last), samples, self._heard)

    # -- a round --------------------------------------------------------------------------------

    def _take(self, samples: Sequence[StageSample]) -> None:
        self._record.add(samples)
        self._samples.extend(samples)
        self._heard += len(samples)

    def _ask(self, now_ns: int) -> list[Action]:
        new = [slot for slot in self._slots if slot not in self._asked]
        self._asked |= dict.fromkeys(new)
        self._answered.clear()
        self._next_ns, self._is_asking = 0, True
        if not self._asked:
            return self._close(now_ns)
        return [*map(Ask, new), WakeAt(now_ns + self._answer_ns)]

    def _has_answered(self, slot: str, now_ns: int) -> list[Action]:
        self._asked.pop(slot, None)
        is_last = self._is_asking and not self._asked
        return self._close(now_ns) if is_last else []

    def _close(self, now_ns: int) -> list[Action]:
        self._is_asking = False
        if self._is_over:
            return []
        if not self._answered:
            self._next_ns = now_ns + self._interval_ns
        silent = {s for s, slot in self._slot_of.items() if slot not in self._answered}
        self._due.extend(self._record.due(silent=silent))
        return self._go_on(now_ns)

    def _go_on(self, now_ns: int) -> list[Action]:
        """Let the next interval be decided on, several after a decision that took long; or rest."""
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
        newest: dict[tuple[str, str], Command] = {}  # the last of each kind and stage
        for command in wanted:
            if isinstance(command, Warn):
                self._record.warned(command)
            else:
                newest[type(command).__name__, command.stage] = command
        tells = []
        for command in newest.values():
            slot = self._slot_of[command.stage]
            if slot not in self._slots:
                continue
            self._sent += 1
            tells.append(Tell(slot, command, (self._turn, self._sent)))
        return tells
