"""Life of a job: the cause of its end, and how long each phase waits.

```
          a slot fails or dies         found, or time is over
runs ───────────────────────▶ settles ───────────▶ checks ──▶ asks ──▶ stops ──▶ fetches ──▶ over
 │ │                                                 ▲   └─ own error, or a ▲      ▲
 │ └─ a stop is asked for ───────────────────────────┘      user's stop ────┘      │
 └─ all slots have ended ──────────────────────────────────────────────────────────┘
the cluster goes, anywhere ──▶ is cut off: final reports ──▶ over
```

Pure: its host (a Ray driver, or the simulator) passes stimuli in and performs the actions that come
out. No phase waits for ever: `due_ns` limits each, and `FetchResults`, which has no limit, is
answered by its host in any case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from enum import Enum, auto

from slackwater.runtime.life.actions import (
    Action,
    AskForDead,
    CheckCluster,
    CollectFinalReports,
    End,
    FetchResults,
    StopSlots,
)
from slackwater.runtime.life.cause import (
    DEATH,
    Cause,
    Failure,
    HomeNode,
    failure_report,
    lost_cluster,
    parted_report,
    silent_peers,
    stalled_report,
)
from slackwater.runtime.life.stimuli import (
    ClusterGone,
    ClusterThere,
    DeadNodes,
    FinalReportsCollected,
    HostSilent,
    ResultsFetched,
    SlotDied,
    SlotEnded,
    Stimulus,
    StopRequested,
    TimePassed,
)
from slackwater.runtime.life.time_limits import TimeLimits
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Plan, collect_sinks

__all__ = ["RECENT", "JobLife"]

RECENT = 20
"""Stimuli that are kept: the ends of some ten slots, and those between, fit on a screen."""


class _Phase(Enum):
    RUNS = auto()
    SETTLES = auto()  # a slot failed: wait for the cause
    CHECKS = auto()  # is the cluster there, to end slots?
    ASKS = auto()  # which nodes are gone?
    STOPS = auto()  # the other slots are to end; one that stands still is killed at the job's end
    FETCHES = auto()
    IS_CUT_OFF = auto()
    OVER = auto()


_ANSWERS: dict[_Phase, type[Stimulus]] = {
    _Phase.CHECKS: ClusterThere,
    _Phase.ASKS: DeadNodes,
    _Phase.FETCHES: ResultsFetched,
    _Phase.IS_CUT_OFF: FinalReportsCollected,
}


class JobLife:
    """Machine that decides how one job ends, from its slots' start on.

    Args:
        plan: plan of the job, every stage in a slot.
        homes: {slot: the node it runs on}.
        time_limits: how long each phase may wait.

    Attributes:
        cause: reason why the job fails; None if no failure is known. Never changes once named.
        due_ns: when to pass in `TimePassed` at the latest; None if no time limit runs.
        failed_ns: when the first failure was noticed; None if no failure was.
    """

    def __init__(
        self,
        plan: Plan,
        homes: Mapping[str, HomeNode],
        *,
        time_limits: TimeLimits | None = None,
    ) -> None:
        self._plan, self._homes = plan, dict(homes)
        self._time_limits, self._began_ns = time_limits or TimeLimits(), 0
        self._ended: dict[str, SlotEnded] = {}
        self._deaths: dict[str, str] = {}  # {slot: why}
        self._own_deaths: set[str] = set()  # of these, ended by code inside them
        self._states: dict[str, str] = {}  # {silent slot: state of its process}
        self._still: set[str] = set()  # of these, not running: not waited for, as they cannot end
        self._lost: set[str] = set()  # ids of nodes that do not answer
        self._gone: str | None = None  # the cluster, and why
        self._is_unwanted = self._is_answered = False
        self._phase = _Phase.RUNS
        self._heard: deque[tuple[int, Stimulus]] = deque(maxlen=RECENT)
        self.cause: Cause | None = None
        self.due_ns: int | None = None
        self.failed_ns: int | None = None

    # -- what it says ----------------------------------------------------------------------

    @property
    def status(self) -> str:
        """State of the job: running, done, stopped or failed; running until all is over."""
        if self._phase is not _Phase.OVER:
            return "running"
        if self.cause is not None:
            return "failed"
        states = [end.state for end in self._ended.values()]
        return "done" if states == ["done"] * len(self._homes) else "stopped"

    @property
    def is_ending(self) -> bool:
        """Whether the job is ending, or has ended."""
        return self._phase is not _Phase.RUNS

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, and no action remains."""
        return self._phase is _Phase.OVER

    @property
    def living(self) -> tuple[str, ...]:
        """Slots that have neither ended nor died, as far as is known."""
        gone = self._ended.keys() | self._deaths.keys()
        return tuple(slot for slot in self._homes if slot not in gone)

    @property
    def ended(self) -> tuple[str, ...]:
        """Slots that have reported their own end."""
        return tuple(self._ended)

    @property
    def heard(self) -> list[str]:
        """Last stimuli, a line each, the latest last: seconds since the start, and text."""
        return [
            f"{(at_ns - self._began_ns) / 1e9:.3f} {stimulus}" for at_ns, stimulus in self._heard
        ]

    def sinks_in(self, slots: Collection[str]) -> tuple[str, ...]:
        """Return the collect sinks in these slots whose rows can be fetched."""
        there = [slot for slot in slots if self._homes[slot].node_id not in self._lost]
        sinks = collect_sinks(self._plan)
        return tuple(sink for sink in sinks if self._plan.slots[sink] in there)

    # -- what it does ----------------------------------------------------------------------

    def begin(self, began_ns: int) -> None:
        """Start the seconds of `heard` here; the clock is that of `handle`, monotonic."""
        self._began_ns = began_ns

    def moved(self, plan: Plan, homes: Mapping[str, HomeNode]) -> None:
        """Use a new plan of the same stages; slots without stages end.

        A slot that had ended and gets stages again is a new one.
        """
        for slot in plan.slot_names:
            if not self._plan.stages_of(slot):
                self._ended.pop(slot, None)
        self._plan = plan
        self._homes |= homes

    def handle(self, stimulus: Stimulus, now_ns: int) -> list[Action]:
        """Take a stimulus; return the actions to perform now, in this order."""
        if self.is_over:
            return []
        if not isinstance(stimulus, TimePassed):
            self._heard.append((now_ns, stimulus))
        self._take(stimulus)
        if self.failed_ns is None and (self._is_troubled or self._gone is not None):
            self.failed_ns = now_ns
        actions: list[Action] = []
        while (next_actions := self._next(now_ns)) is not None:
            actions += next_actions
        return actions

    def _take(self, stimulus: Stimulus) -> None:
        match stimulus:
            case SlotEnded(slot=slot):
                if slot in self.living:
                    self._ended[slot] = stimulus
            case SlotDied(slot, reason, is_own):
                if slot in self.living:
                    self._deaths[slot] = reason
                    if is_own:
                        self._own_deaths.add(slot)
            case HostSilent(node_id, reason):
                self._record_death({node_id: reason})
            case DeadNodes(reasons, states, still):
                self._record_death(reasons)
                self._states.update(states)
                self._still.update(still)
            case ClusterGone(what):
                self._gone = self._gone or what
            case StopRequested():
                self._is_unwanted = True
        if isinstance(stimulus, _ANSWERS.get(self._phase, ())):
            self._is_answered = True

    def _record_death(self, lost: Mapping[str, str]) -> None:
        for slot in self.living:
            node_id = self._homes[slot].node_id
            if node_id in lost:
                self._deaths[slot] = lost[node_id]
        self._lost.update(lost)

    def _next(self, now_ns: int) -> list[Action] | None:
        """Enter the next phase and return its actions; None if it is not time."""
        if self._gone is not None and self._phase not in (_Phase.IS_CUT_OFF, _Phase.OVER):
            return self._cut_off(self._gone, now_ns)
        if not self._has_waited(now_ns):
            return None
        go_on = {
            _Phase.RUNS: self._look,
            _Phase.SETTLES: self._check,
            _Phase.CHECKS: self._end_others,
            _Phase.ASKS: self._stop,
            _Phase.STOPS: self._fetch,
            _Phase.FETCHES: self._end,
            _Phase.IS_CUT_OFF: self._end,
        }
        return go_on[self._phase](now_ns)

    def _has_waited(self, now_ns: int) -> bool:
        """Whether this phase has its answer, or its time limit is over."""
        if self.due_ns is not None and now_ns >= self.due_ns:
            return True
        match self._phase:
            case _Phase.RUNS:
                return self._is_troubled or self._is_unwanted or not self.living
            case _Phase.SETTLES:
                return self._has_root_cause or not self.living
            case _Phase.STOPS:
                return self._still >= set(self.living)
        return self._is_answered

    def _look(self, now_ns: int) -> list[Action]:
        if self._is_troubled:
            self._enter(_Phase.SETTLES, now_ns, self._time_limits.settle_s)
            return []
        return self._check(now_ns) if self._is_unwanted else self._fetch(now_ns)

    def _check(self, now_ns: int) -> list[Action]:
        self._enter(_Phase.CHECKS, now_ns, self._time_limits.check_s)
        return [CheckCluster()]

    def _end_others(self, now_ns: int) -> list[Action]:
        if not self._is_troubled or self._own_failure is not None:
            return self._stop(now_ns)
        self._enter(_Phase.ASKS, now_ns, self._time_limits.dead_s)
        node_ids = dict.fromkeys(home.node_id for home in self._homes.values())
        return [AskForDead(tuple(node_ids), self._time_limits.dead_s, tuple(self._silent))]

    def _stop(self, now_ns: int) -> list[Action]:
        self._name_cause()
        self._enter(_Phase.STOPS, now_ns, self._time_limits.stop_s)
        failure = None if self.cause is None else self.cause.message
        return [StopSlots(self.living, failure)] if self.living else []

    def _fetch(self, now_ns: int) -> list[Action]:
        del now_ns  # its host answers in any case
        self._name_cause()  # a slot that was to stop may have failed at that
        self._enter(_Phase.FETCHES)
        return [FetchResults(self.sinks_in(self._ended))]

    def _cut_off(self, gone: str, now_ns: int) -> list[Action]:
        """End without the cluster: no action may wait for its answer."""
        within_s = self._time_limits.cut_off_s
        self._enter(_Phase.IS_CUT_OFF, now_ns, within_s)
        cause = self.cause or self._own_failure
        if cause is None:
            message = f"job {self._plan.flow!r} has failed: {lost_cluster(gone)}"
            cause = Cause("ClusterError", message)
        self.cause = cause
        return [CollectFinalReports(self.living, cause.message, within_s)]

    def _end(self, now_ns: int) -> list[Action]:
        del now_ns
        self._enter(_Phase.OVER)
        return [End(self.status, self.cause)]

    def _enter(self, phase: _Phase, now_ns: int = 0, within_s: float | None = None) -> None:
        self._phase, self._is_answered = phase, False
        self.due_ns = None if within_s is None else now_ns + round(within_s * NS_PER_SECOND)

    # -- whose fault it was ----------------------------------------------------------------

    @property
    def _failed(self) -> list[SlotEnded]:
        return [end for end in self._ended.values() if end.has_failed]

    @property
    def _is_troubled(self) -> bool:
        return bool(self._deaths or self._failed)

    @property
    def _own_failure(self) -> Cause | None:
        for end in self._failed:
            if end.kind != DEATH:
                assert end.error is not None, "it has failed"
                return Cause(end.kind or "", end.error, (end.slot,))
        return None

    @property
    def _has_root_cause(self) -> bool:
        return bool(self._deaths) or self._own_failure is not None

    def _name_cause(self) -> None:
        """Name the cause once: own error, dead slots, silent slots, lost peer."""
        if self.cause is not None or not self._is_troubled:
            return
        if (own := self._own_failure) is not None:
            self.cause = own
            return
        silent = self._silent
        self._record_death(
            {
                self._homes[slot].node_id: f"{reason}, and it does not answer"
                for slot, reason in silent.items()
                if slot not in self._states
            }
        )
        stalled = {slot: reason for slot, reason in silent.items() if slot in self._states}
        if self._deaths:
            failure = failure_report(
                self._plan, self._deaths, self._homes, lost=self._lost, own=self._own_deaths
            )
            slots = tuple(self._deaths)
        elif stalled:
            failure = stalled_report(self._plan, stalled, self._states, self._homes)
            slots = tuple(stalled)
        else:
            first = self._failed[0]
            assert first.error is not None, "it has failed"
            parted = parted_report(self._plan, self._failed, self._homes)
            failure, slots = parted or Failure(first.error, ""), (first.slot,)
        self.cause = Cause(DEATH, failure.fact, slots, failure.way_out)

    @property
    def _silent(self) -> dict[str, str]:
        return silent_peers(self._plan, self._failed, self.living, self._homes)
