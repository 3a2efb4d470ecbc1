"""Ready stages of a slot, the most urgent first, and those to be ready later.

```
ready    by stimulus        12 join   31 filter   40 bus         the first that has credit runs
         without stimulus   files                                counts as of now
blocked  a full sink's                                           no credit: until some is given
later    45 paced source    50 hold of a gate                    ready once their time has come
```

It is told of a stage when the stage's next work changes. So a slice costs the same whether a slot
has ten stages or three hundred. Source: [mace] §VI-A, Efficient Implementation, where a heap has
the paths of an operator.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["Later", "ReadyStages"]

_SPARE = 64
"""Entries of a heap that may be out of date, beside three for each stage."""

_NEVER_NS = START_NS - 1

_Entry: TypeAlias = tuple[int, int, int]
"""(time, promise of a source, place among the stages): ties go to the least promise, then to the
first in the plan."""


class Later(NamedTuple):
    """Times of the next work that is not due yet; END_NS: of none."""

    work_ns: int
    paced_ns: int
    """Of the next row of a paced source."""
    guess_ns: int
    """Of a poll that may find nothing."""


class _NextWork:
    """Next work of one stage, and its entry in a heap.

    Other entries of the stage are out of date.
    """

    __slots__ = ("entry", "machine", "place", "wakeup")

    def __init__(self, machine: StageMachine, place: int) -> None:
        self.machine, self.place = machine, place
        self.wakeup: Wakeup | None = None
        self.entry: _Entry | None = None


class _Heap:
    """Heap of entries, of which some are out of date."""

    __slots__ = ("_entries", "_works")

    def __init__(self, works: list[_NextWork]) -> None:
        self._works = works
        self._entries: list[_Entry] = []

    def push(self, time_ns: int, promise_ns: int, work: _NextWork) -> None:
        """Add the entry of a stage."""
        entries = self._entries
        work.entry = entry = (time_ns, promise_ns, work.place)
        heapq.heappush(entries, entry)
        if len(entries) > 3 * len(self._works) + _SPARE:
            entries[:] = filter(self._holds, entries)
            heapq.heapify(entries)

    def first_ns(self) -> int:
        """Return the time of the first entry; END_NS without one."""
        entries, works = self._entries, self._works
        while entries:
            entry = entries[0]
            if works[entry[2]].entry is entry:
                return entry[0]
            heapq.heappop(entries)
        return END_NS

    def pop(self) -> _NextWork:
        """Remove the first entry, of which `first_ns` has told."""
        return self._works[heapq.heappop(self._entries)[2]]

    def first_able(
        self, is_able: Callable[[StageMachine], bool], blocked: dict[str, _NextWork]
    ) -> _Entry | None:
        """Return the first entry of a stage that is able; None if none exists.

        Args:
            is_able: whether a stage may run.
            blocked: {stage: its next work}; those before, that may not, are moved there.
        """
        entries, works = self._entries, self._works
        while entries:
            entry = entries[0]
            work = works[entry[2]]
            if work.entry is entry:
                if is_able(work.machine):
                    return entry
                blocked[work.machine.stage.name] = work
            heapq.heappop(entries)
        return None

    def least(self, counts: Callable[[StageMachine], bool]) -> int | None:
        """Return the least time of the stages that count; None if none exists."""
        entries, indices = self._entries, [0]
        least_ns: int | None = None
        while indices:  # down the heap as far as an entry may be less
            index = indices.pop()
            if index >= len(entries) or (least_ns is not None and entries[index][0] >= least_ns):
                continue
            if self._holds(entries[index]) and counts(self._works[entries[index][2]].machine):
                least_ns = entries[index][0]
            else:
                indices += (2 * index + 1, 2 * index + 2)
        return least_ns

    def _holds(self, entry: _Entry) -> bool:
        return self._works[entry[2]].entry is entry


class ReadyStages:
    """Next work of all stages of a slot.

    Args:
        machines: machines of the stages, in their order in the plan.
    """

    def __init__(self, machines: Iterable[StageMachine]) -> None:
        self._works = [_NextWork(machine, place) for place, machine in enumerate(machines)]
        self._ranked, self._unranked = _Heap(self._works), _Heap(self._works)
        self._timed, self._paced, self._guesses = (_Heap(self._works) for _ in range(3))
        # Places of paced sources with rows that are due. Most of these are left out by a filter,
        # so a source goes among the ready ones once others are looked for.
        self._newly_due: set[int] = set()
        self._looked_at: list[int] = []
        self._later_ns = END_NS  # nothing is due before
        self._now_ns = START_NS  # of the last question
        self._blocked: dict[str, _NextWork] = {}  # ready, in no heap: they have no credit
        self._going = {work.machine.stage.name for work in self._works}
        # Source whose rows have waited least; None if it is to be looked for.
        self._least_waiting: _NextWork | None = None
        for work in self._works:
            work.machine.on_next = partial(self._changed, work)
            self._changed(work)

    def _changed(self, work: _NextWork) -> None:
        """Note the next work of a stage, which may have changed."""
        machine = work.machine
        wakeup = machine.next
        if machine.is_finished:
            self._going.discard(machine.stage.name)
        if wakeup == work.wakeup:
            return
        if machine.source is not None:
            self._note_wait(work, wakeup)
        work.wakeup = wakeup
        work.entry = None
        if self._blocked:
            self._blocked.pop(machine.stage.name, None)
        if wakeup is None:
            return
        at_ns = wakeup.at_ns
        if at_ns <= self._now_ns:
            if machine.is_paced and at_ns > START_NS:
                self._newly_due.add(work.place)
            else:
                self._add(work, wakeup)
            return
        self._later_ns = min(self._later_ns, at_ns)
        heap = self._paced if machine.is_paced else self._timed
        if wakeup.is_guess:
            heap = self._guesses
        heap.push(at_ns, wakeup.promise_ns, work)

    @property
    def all_have_ended(self) -> bool:
        """Whether every stage has seen its end."""
        return not self._going

    def _note_wait(self, work: _NextWork, wakeup: Wakeup | None) -> None:
        """Note that the rows of a source may wait since another time."""
        least = self._least_waiting
        if least is None:
            return
        since_ns = _since_ns(wakeup)
        if since_ns > _since_ns(least.wakeup):
            self._least_waiting = work
        elif least is work and since_ns < _since_ns(work.wakeup):
            self._least_waiting = None

    def _add(self, work: _NextWork, wakeup: Wakeup) -> None:
        """Add a stage to those that are ready."""
        if wakeup.rank_ns is None:
            self._unranked.push(START_NS, wakeup.promise_ns, work)
        else:
            self._ranked.push(wakeup.rank_ns, wakeup.promise_ns, work)

    def _move_due(self, now_ns: int) -> None:
        """Add the stages to those that are ready whose time has come."""
        paced = self._paced
        timed_ns, guess_ns = self._moved(self._timed, now_ns), self._moved(self._guesses, now_ns)
        while (paced_ns := paced.first_ns()) <= now_ns:
            work = paced.pop()
            work.entry = None
            self._newly_due.add(work.place)
        self._later_ns = min(timed_ns, guess_ns, paced_ns)

    def _moved(self, heap: _Heap, now_ns: int) -> int:
        """Move a heap's stages that are due; return when the next is."""
        while (first_ns := heap.first_ns()) <= now_ns:
            work = heap.pop()
            assert work.wakeup is not None, "its entry is up to date"
            self._add(work, work.wakeup)
        return first_ns

    def newly_due(self, now_ns: int) -> Sequence[StageMachine]:
        """Return the paced sources with rows newly due, once, in their order."""
        self._now_ns = now_ns
        if now_ns >= self._later_ns:
            self._move_due(now_ns)
        if not self._newly_due:
            return ()
        due = sorted(self._newly_due)
        self._newly_due.clear()
        self._looked_at += due
        return [self._works[place].machine for place in due]

    def first(self, now_ns: int, has_credit: Callable[[StageMachine], bool]) -> StageMachine | None:
        """Return the stage with the most urgent work; None if none may run.

        Args:
            now_ns: time by the slot's clock; work without a stimulus counts as of now.
            has_credit: whether a stage may send what it makes. A stage without credit waits for
                `unblock`.
        """
        self._now_ns = now_ns
        if now_ns >= self._later_ns:
            self._move_due(now_ns)
        if self._looked_at or self._newly_due:
            for place in (*self._looked_at, *self._newly_due):
                work = self._works[place]
                if work.entry is None and work.wakeup is not None:
                    self._add(work, work.wakeup)
            self._looked_at.clear()
        ranked = self._ranked.first_able(has_credit, self._blocked)
        unranked = self._unranked.first_able(has_credit, self._blocked)
        if ranked is None or unranked is None:
            entry = ranked or unranked
        else:
            entry = ranked if ranked < (now_ns, *unranked[1:]) else unranked
        return None if entry is None else self._works[entry[2]].machine

    def unblock(self, stage: str) -> None:
        """Note that a stage has been given credit."""
        work = self._blocked.pop(stage, None)
        if work is not None and work.wakeup is not None:
            self._add(work, work.wakeup)

    def earliest_ns(self, counts: Callable[[StageMachine], bool]) -> int | None:
        """Return the earliest stimulus of due work of stages that count."""
        blocked = [work for work in self._blocked.values() if counts(work.machine)]
        ranks_ns = [work.wakeup.rank_ns for work in blocked if work.wakeup is not None]
        ranks_ns.append(self._ranked.least(counts))
        return min([ns for ns in ranks_ns if ns is not None], default=None)

    def latest_wait_ns(self) -> int | None:
        """Return since when rows of each input wait; None if all are over."""
        if (least := self._least_waiting) is None:
            least = self._least_waiting = max(self._works, key=lambda work: _since_ns(work.wakeup))
        since_ns = _since_ns(least.wakeup)
        return None if since_ns == _NEVER_NS else since_ns

    def later(self) -> Later:
        """Return when the next work is due that is not due now."""
        return Later(self._timed.first_ns(), self._paced.first_ns(), self._guesses.first_ns())


def _since_ns(wakeup: Wakeup | None) -> int:
    """Return since when rows wait; `_NEVER_NS` for a stage without an input."""
    if wakeup is None or wakeup.rows_since_ns is None:
        return _NEVER_NS
    return wakeup.rows_since_ns
