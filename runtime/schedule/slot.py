"""A slot: one core that runs its stages one at a time, earliest stimulus first.

Pure: a host (a Ray actor, or the simulator) delivers messages and credit, asks for the next
slice of work, carries out its actions, and says how long it took.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

from slackwater.runtime.config import Limits
from slackwater.runtime.control.commands import Command, Move, SetRelease, Shed, Warn, refusal
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.report import ChannelReport, StageReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import END_NS, NS_PER_SECOND, READY_ONLY, Batch, Message
from slackwater.runtime.model.later import KEYS_AT_ONCE, Later
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.nearest import listed
from slackwater.runtime.plan.plan import Channel, Stage
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.schedule.actions import Action, Grant, Rest, Send, Slice
from slackwater.runtime.schedule.backlog import AwaitedSources, SliceLengths
from slackwater.runtime.schedule.by_order import chosen_by
from slackwater.runtime.schedule.cut import STAYING, Cut
from slackwater.runtime.schedule.left_out import rows_left_out
from slackwater.runtime.schedule.order import Order
from slackwater.runtime.schedule.paced_promises import PacedPromises
from slackwater.runtime.schedule.polls import Looks
from slackwater.runtime.schedule.queues import credit_of
from slackwater.runtime.schedule.ready import ReadyStages
from slackwater.runtime.schedule.requested_promises import RequestedPromises, Unsaid
from slackwater.runtime.schedule.stage import StageMachine
from slackwater.runtime.schedule.stimuli import in_words, ring


class Slot:
    """The stages of one core and their scheduler. Source: [mace] Def. 7, §VI-A.

    Args:
        name: name of the slot.
        stages: stages that run in it.
        start_ns: start of the job's sources, and of the first interval.
        limits: limits of the job.
        is_sampled: whether it takes samples, for those who decide.
        interval_ns: length of the intervals of samples.
        weighs: whether it counts the bytes of rows that its channels are given.
        deadline_ns: deadline of the flow; None if none exists.
    """

    def __init__(
        self,
        name: str,
        stages: Sequence[Stage],
        *,
        start_ns: int,
        limits: Limits | None = None,
        is_sampled: bool = False,
        interval_ns: int = NS_PER_SECOND,
        weighs: bool = False,
        deadline_ns: int | None = None,
    ) -> None:
        self.name, self._weighs = name, weighs
        self.keyed: list[tuple[Channel, Batch]] = []
        """Rows sent to replicas, if it weighs: whose keys they have is counted after the run."""
        self._limits = limits or Limits()
        self._order: Order | None = self._limits.order
        self._looks = Looks(self._limits.source_gap_ns)
        self._stages = {
            s.name: StageMachine(
                s,
                start_ns=start_ns,
                limits=self._limits,
                is_sampled=is_sampled,
                interval_ns=interval_ns,
                looks=self._looks,
                has_deadline=deadline_ns is not None,
            )
            for s in stages
        }
        self._requested, self._awaited = (
            RequestedPromises(self._stages),
            AwaitedSources(self._stages),
        )
        self._has_requested = False
        self._paced = PacedPromises(self._stages, gap_ns=self._limits.promise_gap_ns)
        self._ready = ReadyStages(self._stages.values())
        self._channels: dict[str, Channel] = {
            c.name: c for s in stages for c in (*s.inputs, *s.outputs)
        }
        self._credit = {c.name: self._limits.credit_rows for s in stages for c in s.outputs}
        # Ordinals of rows: how many a channel has been sent here, and how many it has brought.
        self._sent = {c.name: 0 for s in stages for c in s.outputs}
        self._received = {c.name: 0 for s in stages for c in s.inputs}
        # Credit between slots, so far: given for inputs, and got for outputs. What of it is on its
        # way when a checkpoint is taken is the difference.
        self._granted = {c.name: 0 for s in stages for c in s.inputs}
        self._credited = {c.name: 0 for s in stages for c in s.outputs}
        self._ended: set[str] = set()  # channels whose end has come
        self.marked = 0
        """Number of the last checkpoint at which its streams were cut; 0 before the first."""
        self._cut: Cut | None = None  # of the checkpoint that is being taken
        self._to_ack: dict[int, dict[str, dict[str, bytes]]] = {}  # {checkpoint: {source: …}}
        self._complete: list[int] = []  # the newest checkpoints that are complete, ascending
        # A grant for every message would be as much traffic as the messages. Below an eighth of
        # the window it can wait: the sender still has the other seven.
        self._grant_rows = max(1, self._limits.credit_rows // 8)
        self.at_work: str | None = None
        """The stage of the last slice, which may be under way."""
        self._owed: dict[str, int] = {}  # {channel: rows consumed whose credit is held back}
        # {stage: its channels, with a grant's worth of them}
        self._ripe: dict[str, dict[str, None]] = {}
        self._newest: dict[str, tuple[int, ...]] = {}  # {kind, stage: last number}
        self._lengths = SliceLengths(
            self._stages, self._limits, start_ns=start_ns, deadline_ns=deadline_ns
        )
        self._reports = {
            c.name: ChannelReport(c.name, c.source, c.target) for c in self._channels.values()
        }
        self._turn, self._turns = 0, dict[str, int]()  # {stage: number of its last slice}
        self._start_ns, self._recent = start_ns, ring()
        self._idle_ns = 0  # how long there has been nothing to do
        self._idle_since_ns: int | None = None

    @classmethod
    def of(cls, plan: SlotPlan, *, start_ns: int) -> Slot:
        """Return the slot of this part of a plan."""
        return cls(
            plan.name,
            plan.stages,
            start_ns=start_ns,
            limits=plan.limits,
            is_sampled=plan.interval_ns is not None,
            interval_ns=plan.interval_ns or NS_PER_SECOND,
            weighs=plan.weighs,
            deadline_ns=plan.deadline_ns,
        )

    def deliver(self, channel: str, message: Message, now_ns: int, *, link_ns: int = 0) -> None:
        """Take a message from another slot, where it was sent `link_ns` ago."""
        self._recent.append((now_ns, "rows", channel, message.rows, message.progress.promise_ns))
        if self._cut is not None:
            self._cut.arrived(channel, message)
        self._deliver(channel, message, now_ns, link_ns)

    def _deliver(self, channel: str, message: Message, now_ns: int, link_ns: int) -> None:
        target = self._channels[channel].target
        self._received[channel] += message.rows
        if message.progress.is_end:
            self._ended.add(channel)
        self._reports[channel].rows_received += message.rows
        self._stages[target].deliver(channel, message, now_ns, link_ns=link_ns)

    def credit(self, channel: str, rows: int) -> None:
        """Take credit that the other end has granted."""
        self._recent.append((None, "credit", channel, rows))
        self._credited[channel] += rows
        self._add_credit(self._channels[channel], rows)

    def _add_credit(self, channel: Channel, rows: int) -> None:
        had = self._credit[channel.name]
        self._credit[channel.name] = had + rows
        if had <= 0:
            self._ready.unblock(channel.source)

    def open(self, now_ns: int) -> None:
        """Open the inputs and read their first blocks, before the start: no stage is charged."""
        for machine in self._stages.values():
            machine.open(now_ns)

    def woken(self, now_ns: int) -> None:
        """Poll the inputs again that end a sleep when they have something: one may have."""
        for machine in self._stages.values():
            if machine.source is not None:
                machine.woken(now_ns)

    def step(self, now_ns: int) -> Slice | None:
        """Do the most urgent slice of work now; return None if no stage may run.

        A stage one of whose outputs has no credit cannot run: so back-pressure travels upstream.
        """
        if not self._has_requested:
            self._has_requested = True
            if unsaid := self._requested.begin():
                return self._say(unsaid, now_ns)
        if now_ns >= self._paced.not_before_ns and (owed := self._tell_owed(now_ns)) is not None:
            return owed
        due = () if self._order else self._ready.newly_due(now_ns)
        done = rows_left_out(due, now_ns, self._lengths.sizes) if due else None
        if done is not None:
            for part in done.parts:
                self._paced.note(part.stage)
        chosen = self._chosen(now_ns) if done is None else None
        if self._idle_since_ns is not None:
            self._idle_ns += max(now_ns - self._idle_since_ns, 0)
        self._idle_since_ns = now_ns if done is None and chosen is None else None
        return done if chosen is None else self._run(chosen, now_ns)

    def _chosen(self, now_ns: int) -> StageMachine | None:
        if self._order is not None:
            able = {
                machine: now_ns if wakeup.rank_ns is None else wakeup.rank_ns
                for machine in self._stages.values()
                if (wakeup := machine.next) is not None
                and wakeup.at_ns <= now_ns
                and self._has_credit(machine)
            }
            return chosen_by(self._order, able, self._turns, now_ns, slot=self.name)
        # StimulusOrder, without a view of each stage before each slice; and `AwaitedSources`.
        chosen = self._ready.first(now_ns, self._has_credit)
        if chosen is None or chosen.stage.name not in self._awaited.gates:
            return chosen
        stages, turns, has_credit = self._stages, self._turns, self._has_credit
        return self._awaited.before(
            chosen, now_ns, stages=stages, turns=turns, has_credit=has_credit
        )

    def _run(self, machine: StageMachine, now_ns: int) -> Slice:
        name = self.at_work = machine.stage.name
        self._turn += 1
        self._turns[name] = self._turn
        max_rows = self._lengths.next_rows(machine, self._ready, now_ns)
        self._recent.append((now_ns, "slice", name, max_rows))
        work = machine.work(now_ns, max_rows=max_rows)
        handed = work.handed
        if handed.has_read:
            self._recent.pop()  # a poll a millisecond would hide what a failure's report is to show
        actions: list[Action] = []
        if work.egress is not None:
            actions.append(work.egress)
        for sent, part in work.sends:
            self._carry(sent, part, now_ns, actions)
        if name in self._requested.asking:
            for unsaid in self._requested.after(machine):
                self._carry(unsaid.channel, unsaid.message, now_ns, actions)
        self._paced.note(name)
        for channel, rows in handed.used:
            self._owe(channel, self._owed.get(channel, 0) + rows)
        if self._ripe and (ripe := self._ripe.get(name)):
            self._grant(machine, ripe, actions)
        return Slice(
            name,
            handed.rows_in,
            actions,
            now_ns,
            handed.compared,
            handed.released,
            work.results,
            handed.passed_over,
            handed.has_read,
        )

    def _say(self, unsaid: Sequence[Unsaid], now_ns: int) -> Slice:
        """Send promises that a stage had not asked for before it moved."""
        actions: list[Action] = []
        for promise in unsaid:
            self._carry(promise.channel, promise.message, now_ns, actions)
        return Slice(unsaid[0].source.stage.name, 0, actions, now_ns)

    def _tell_owed(self, now_ns: int) -> Slice | None:
        """Send promises that a stage had withheld; None if all were sent with rows."""
        if (due := self._paced.due(now_ns)) is None:
            return None
        stage, sends = due
        actions: list[Action] = []
        for channel, message in sends:
            self._carry(channel, message, now_ns, actions)
        return Slice(stage, 0, actions, now_ns)

    def _carry(self, channel: Channel, part: Message, now_ns: int, actions: list[Action]) -> None:
        self._credit[channel.name] -= credit_of(part)
        self._sent[channel.name] += part.rows
        report = self._reports[channel.name]
        report.rows_sent += part.rows
        report.messages += 1
        report.promises += part.batch is None
        if self._weighs and part.batch is not None:
            report.bytes_sent += part.batch.nbytes
            if channel.owned is not None:
                self.keyed.append((channel, part.batch))
        if channel.target in self._stages:
            self._deliver(channel.name, part, now_ns, 0)
        else:
            actions.append(Send(channel, part))

    def _owe(self, channel: str, rows: int) -> None:
        """Note the rows of a channel whose credit is held back."""
        self._owed[channel] = rows
        if rows >= self._grant_rows:
            self._ripe.setdefault(self._channels[channel].target, {})[channel] = None

    def _grant(self, machine: StageMachine, ripe: dict[str, None], actions: list[Action]) -> None:
        for name in sorted(ripe):  # a restored slot has them in another order
            if not machine.grant(name):
                continue
            channel, rows = self._channels[name], self._owed.pop(name)
            del ripe[name]
            if channel.source in self._stages:
                self._add_credit(channel, rows)
            else:
                self._granted[channel.name] += rows
                actions.append(Grant(channel, rows))

    def charge(self, done: Slice, took_ns: int) -> None:
        """Tell how long a slice took; the stage's next ones are cut by it."""
        if done.each:
            for part, share_ns in done.shares(took_ns):
                self.charge(part, share_ns)
            return
        machine = self._stages[done.stage]
        machine.charge(done.began_ns, took_ns, self._idle_ns, has_read=done.has_read)
        if done.released:  # else no operator was at work
            self._lengths.sizes[done.stage].took(done.released, took_ns)

    def charge_reading(self, source: str, took_ns: int) -> None:
        """Charge a source for a thread that read its input."""
        self._stages[source].report.service_ns += took_ns

    def apply(self, command: Command, *, number: tuple[int, ...] = ()) -> None:
        """Carry out what a decider wants, from the next slice on.

        Args:
            command: command to carry out.
            number: commands may overtake each other on their way, and ascend by this as they were
                meant: one that follows a higher one of its kind and stage is left out. After a
                restore, numbers continue after those from before it.

        Raises:
            SettingError: no such stage here; no slot can do that; nothing to be shed; no gate, one
                that cannot hold rows by the clock, or one that was planned as ready-only: steps
                after it count on the order of its rows.
        """
        self._recent.append((None, "command", f"{type(command).__name__} {command.subject.name!r}"))
        machine = self._stages.get(command.subject.name)
        if machine is None:
            raise SettingError(
                f"slot {self.name!r} has no stage {command.subject.name!r} for {command!r}; it has "
                f"{', '.join(map(repr, self._stages))}"
            )
        check_command(machine, command)
        subject = f"{type(command).__name__} {command.subject.name}"
        if number and number <= self._newest.get(subject, ()):
            return
        carry_out(machine, command)
        self._newest[subject] = number

    def samples(self, now_ns: int) -> list[StageSample]:
        """Return the samples of all stages, of the seconds that are over by now, once."""
        return [sample for machine in self._stages.values() for sample in machine.samples(now_ns)]

    def rest(self, now_ns: int) -> Rest:
        """Return how long to sleep, after `step` found no work.

        What could be done but for credit waits for that, not for a time. Paced sources share one
        wake-up.
        """
        if self._ready.first(now_ns, self._has_credit) is not None:
            return Rest(now_ns, is_guess=False)
        first_ns, paced_ns, guess_ns = self._ready.later()
        first_ns = min(first_ns, self._paced.next_ns())
        if paced_ns < first_ns:
            first_ns = min(first_ns, max(paced_ns, self._looks.next_ns))
        if guess_ns < first_ns:
            return Rest(guess_ns, is_guess=first_ns == END_NS)
        return Rest(None if first_ns == END_NS else first_ns, is_guess=False)

    def _has_credit(self, machine: StageMachine) -> bool:
        credit = self._credit
        for name in machine.output_names:  # noqa: SIM110 - asked before each slice: no generator
            if credit[name] <= 0:
                return False
        return True

    @property
    def is_finished(self) -> bool:
        """Whether every stage has seen its end."""
        return self._ready.all_have_ended

    @property
    def ended(self) -> set[str]:
        """Channels whose stream has ended: its end has come, or was sent."""
        finished = [machine for machine in self._stages.values() if machine.is_finished]
        return self._ended.union(*(machine.output_names for machine in finished))

    @property
    def stages(self) -> dict[str, StageMachine]:
        """The machines, by stage name."""
        return self._stages

    @property
    def channels(self) -> dict[str, ChannelReport]:
        """The counters of its channels, by name; they go on."""
        return self._reports

    def reports(self, now_ns: int) -> tuple[list[StageReport], list[ChannelReport]]:
        """Return the counters of all stages and channels as they stand; they change no more."""
        stages = [machine.report_at(now_ns) for machine in self._stages.values()]
        withheld = {
            name: count
            for machine in self._stages.values()
            for name, count in machine.outputs.withheld_by_channel().items()
        }
        channels = [
            replace(report, withheld=withheld.get(name, 0))
            for name, report in self._reports.items()
        ]
        return stages, channels

    def recent(self) -> list[str]:
        """Return what it was given last, a line each, the latest last; see `in_words`."""
        return in_words(self._recent, slot=self.name, start_ns=self._start_ns)

    # -- checkpoints ----------------------------------------------------------------------

    def mark(self, number: int, cpu_ns: Callable[[], int] = int) -> list[Channel]:
        """Cut this slot's streams here, between two steps; source: Chandy and Lamport 1985, §3.

        Args:
            number: number of the checkpoint, above those before. A mark that is not is passed over.
            cpu_ns: clock of the CPU time of the thread that runs the slot.

        Returns:
            The channels to other slots on which the mark must follow what was sent so far.
        """
        if number <= self.marked:
            return []
        self.marked = number
        inputs = [c for machine in self._stages.values() for c in machine.stage.inputs]
        outputs = [c for machine in self._stages.values() for c in machine.stage.outputs]
        others = {c.name for c in inputs if c.source not in self._stages}
        self.give_up_cut()
        later: list[Later] = []
        state = self.snapshot(later=later)
        self._cut = Cut(number, state, others - self._ended, later, cpu_ns)
        self._to_ack[number] = {
            name: machine.source.positions
            for name, machine in self._stages.items()
            if machine.source is not None
        }
        return [c for c in outputs if c.target not in self._stages]

    def mark_came(
        self, channel: str, number: int, cpu_ns: Callable[[], int] = int
    ) -> list[Channel]:
        """Take a mark from another slot, and cut unless that was done; see `mark`."""
        marks = self.mark(number, cpu_ns)
        if self._cut is not None and self._cut.number == number:
            self._cut.close(channel)
        return marks

    @property
    def is_saving(self) -> bool:
        """Whether a part of the cut is not saved yet; see `save_more`."""
        return self._cut is not None and self._cut.is_saving

    def save_more(self, most: int = KEYS_AT_ONCE) -> None:
        """Save more of the cut, between two steps.

        Args:
            most: number of keys at most.

        Raises:
            OperatorError: state of a user's object is not plain.
        """
        if self._cut is not None and self._cut.is_saving:
            self._cut.step(most)

    def give_up_cut(self) -> None:
        """Give up the cut that is not complete yet, if there is one."""
        if self._cut is not None:
            self._cut.give_up()
            self._cut = None

    def take_cut(self) -> Cut | None:
        """Return the cut, once, when it is complete."""
        cut = self._cut
        if cut is None or not cut.is_complete:
            return None
        self._cut = None
        return cut

    def complete(self, number: int) -> None:
        """Tell inputs which rows no restore will ask for again: a checkpoint is complete.

        They are those before the oldest checkpoint that stays, once `STAYING` are complete.

        Args:
            number: number of the checkpoint, which is cut; older ones are passed over.

        Raises:
            IngestError: an input's own code raised.
        """
        if number not in self._to_ack or number in self._complete:
            return
        self._complete = [*self._complete[1 - STAYING :], number]
        self._to_ack = {
            known: positions
            for known, positions in self._to_ack.items()
            if known > number or known in self._complete
        }
        if len(self._complete) < STAYING:
            return
        for name, positions in self._to_ack[self._complete[0]].items():
            machine = self._stages.get(name)
            if machine is not None and machine.source is not None:
                machine.source.ack(positions)

    def snapshot(
        self, leaving: Collection[str] | None = None, later: list[Later] | None = None
    ) -> dict[str, Any]:
        """Return all state between two steps, as plain values (runtime/model/plain.py).

        A source's is a number of rows of its input, and what of them has not been handed over.
        Not in it: what users' functions keep to themselves, actions that were returned, which are
        the host's, and stages that are not `leaving` (None if all are; see `Slot.restore`, `old`).

        Args:
            leaving: names of these stages.
            later: gets parts of it that are saved in steps; None if nothing is.

        Returns:
            `version`, and two snapshots. `stream` is needed to go on with equal results.
            `measures` are reports, samples and times of slices: without them they begin again.
        """
        machines = {
            name: machine
            for name, machine in self._stages.items()
            if leaving is None or name in leaving
        }
        stream = {
            "stages": {n: to_plain(save(own, later), where=n) for n, own in machines.items()},
            "sent": dict(self._sent),
            "received": dict(self._received),
            "credit": dict(self._credit),
            "owed": dict(self._owed),
            "granted": dict(self._granted),
            "credited": dict(self._credited),
            "ended": sorted(self._ended),
            "marked": self.marked,
            "newest": dict(self._newest),
            "turns": dict(self._turns),
            "looks": save(self._looks),
        }
        measures = {
            "stages": {n: to_plain(machine.measures(), where=n) for n, machine in machines.items()},
            "channels": {name: asdict(report) for name, report in self._reports.items()},
            "slice_sizes": {name: save(size) for name, size in self._lengths.sizes.items()},
            "idle": [self._idle_ns, self._idle_since_ns],
        }
        return {"version": VERSION, "stream": stream, "measures": measures}

    def restore(self, state: dict[str, Any], old: Slot | None = None) -> None:
        """Continue from a snapshot of the same stages; call it on a new slot.

        Its next step goes on as the old slot's would have: to the same output, ledger and report.

        Args:
            state: the snapshot, or one that `rearranged` has made of several. Without `measures`
                the output is the same, and reports, samples and lengths of slices begin again.
            old: a slot of the same process that does no more: what of its stages is not in `state`
                goes on here as it is, a source with its open input.

        Raises:
            SettingError: it is of other stages or channels, or of another version.
        """
        if old is not None:
            old.give_up_cut()
        staying = {} if old is None else {n: m for n, m in old.stages.items() if n in self._stages}
        check_version(state, slot=self.name)
        stream = state["stream"]
        for name in stream["stages"]:
            staying.pop(name, None)
        check_parts({**stream["stages"], **staying}, stream, slot=self)
        self._stages.update(staying)
        for machine in staying.values():
            if machine.source is not None:
                machine.source.looks = self._looks
        for name, saved in stream["stages"].items():
            restore(self._stages[name], from_plain(saved))
        self._requested, self._has_requested = RequestedPromises(self._stages), False
        self._sent, self._received = dict(stream["sent"]), dict(stream["received"])
        self._credit = dict(stream["credit"])
        self._owed, self._ripe = {}, {}
        for name, rows in stream["owed"].items():
            self._owe(name, rows)
        self._granted, self._credited = dict(stream["granted"]), dict(stream["credited"])
        self._ended, self.marked = set(stream["ended"]), stream["marked"]
        self._newest = {subject: tuple(number) for subject, number in stream["newest"].items()}
        self._turns = dict(stream["turns"])
        self._turn = max(self._turns.values(), default=0)
        restore(self._looks, stream["looks"])
        if (measures := state.get("measures")) is not None:
            self._restore_measures(measures)
        else:
            for name in stream["stages"]:
                self._stages[name].measure_again()
        self._ready = ReadyStages(self._stages.values())
        self._paced = PacedPromises(self._stages, gap_ns=self._limits.promise_gap_ns)

    def _restore_measures(self, measures: Mapping[str, Any]) -> None:
        for name, saved in measures["stages"].items():
            self._stages[name].restore_measures(from_plain(saved))
        for name, report in self._reports.items():
            for field, counted in measures["channels"][name].items():
                setattr(report, field, counted)
        for name, size in self._lengths.sizes.items():
            restore(size, measures["slice_sizes"][name])
        self._idle_ns, self._idle_since_ns = measures["idle"]

    @property
    def close_problems(self) -> list[str]:
        """Errors of inputs that could not be closed."""
        sources = [m.source for m in self._stages.values() if m.source is not None]
        return [s.close_problem for s in sources if s.close_problem is not None]

    def close(self) -> None:
        """Close the inputs of the sources."""
        for machine in self._stages.values():
            machine.close()


def check_command(machine: StageMachine, command: Command) -> None:
    """Check that a slot can carry a command out.

    Raises:
        SettingError: it cannot; the stage sheds nothing; its gate was planned as ready-only.
    """
    if isinstance(command, Move | Warn):
        raise SettingError(refusal(command))
    if isinstance(command, Shed):
        if not machine.stage.sheds:
            raise SettingError(
                f"stage {command.subject.name!r} sheds nothing; only a pattern does, with "
                "shed=sw.shedding.espice(latency=…)"
            )
    elif machine.stage.is_ready_only and command.rule != READY_ONLY:
        raise SettingError(
            f"stage {command.subject.name!r} was planned as ready-only, so steps after it count "
            "on its order; give the flow a deadline, or the step a slack to begin with"
        )


def carry_out(machine: StageMachine, command: Command) -> None:
    """Do what a command says, from the next slice on.

    Raises:
        SettingError: the stage has no gate, or one that cannot hold rows by the clock.
    """
    if isinstance(command, Shed):
        assert machine.operator is not None, "its step sheds"
        machine.operator.reckon_with(command.rest_ns)
    elif isinstance(command, SetRelease):
        try:
            machine.set_rule(command.rule, trials=command.trials)
        except SettingError as problem:
            raise SettingError(f"stage {command.subject.name!r}: {problem}") from None


VERSION = 46
"""Of `Slot.snapshot`; another one whenever what is in it changes its meaning."""


class _Slot(Protocol):
    name: str

    @property
    def stages(self) -> Mapping[str, Any]: ...

    @property
    def channels(self) -> Mapping[str, Any]: ...


_WHO = "slot {slot!r} cannot go on from this snapshot"


def check_version(state: Mapping[str, Any], *, slot: str) -> None:
    """Check that a slot can read a snapshot.

    Raises:
        SettingError: it is of another version.
    """
    if state.get("version") != VERSION:
        raise SettingError(
            f"{_WHO.format(slot=slot)}: it is of version {state.get('version')!r}, and this "
            f"release reads version {VERSION}; go on with the release that made it, or start the "
            "flow from its beginning"
        )


def check_parts(stages: Mapping[str, Any], stream: Mapping[str, Any], *, slot: _Slot) -> None:
    """Check that a slot has the stages and channels of a snapshot.

    Args:
        stages: stages of the snapshot, and those that go on as they are.
        stream: state of streams in the snapshot.
        slot: slot that is to go on.

    Raises:
        SettingError: it has others.
    """
    channels = {**stream["sent"], **stream["received"]}
    for what, saved, own in (
        ("stages", stages, slot.stages),
        ("channels", channels, slot.channels),
    ):
        if set(saved) != set(own):
            raise SettingError(
                f"{_WHO.format(slot=slot.name)}: it has the {what} {listed(saved)}, and the slot "
                f"has {listed(own)}; go on with the flow and the placement that it was made of"
            )
