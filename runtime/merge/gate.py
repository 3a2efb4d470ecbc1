"""Slack-ScaleGate: merges writers' streams; releases what is ready, or slack-ready.

```
a         1---4-----9
b         --2------8)     8) promises nothing earlier than 8
released  1-2-4           9 waits: b may still send 8
```

Ready: nothing that comes before it can follow. Slack-ready: the newest event seen is more
than the slack ahead of it. Both release a prefix of the total order (event time, port, writer,
order within the writer), so a read is one cut. A row that arrives later, and is older than a
reader has seen, goes to that reader's late queue and leaves first. Source: [ssg] Def. 2.1, 3.1,
Algorithms 1-3; in batches, with a frontier that knows about ties (runtime/progress).
Departures: docs/papers/.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.runtime.errors import SettingError
from slackwater.runtime.merge.reader import Cut, ReaderState
from slackwater.runtime.merge.waits import WaitLog
from slackwater.runtime.merge.writer import Writer
from slackwater.runtime.model import (
    END_NS,
    READY_ONLY,
    START_NS,
    Batch,
    GateRead,
    Progress,
    ReleaseRule,
)
from slackwater.runtime.model.state import Fields
from slackwater.runtime.progress import Frontier


class SlackGate:
    """A gate over some writers, read by one or more readers.

    Each reader sees each row exactly once. Not thread-safe: its slot is its lock.

    Args:
        writers: writers of its inputs.
        readers: number of its readers.
        rule: rule by which it releases rows.
        keeps_waits: whether it is told when rows come, and keeps account of how long they wait;
            without that, and with several readers, it can hold rows to no time by the clock.

    Attributes:
        left_since_ns: arrival of the row that had waited longest among those that the last read
            released; None if it released none, or waits are not kept.
    """

    STATE = Fields(
        "_frontier",
        "_readers",
        "_promise_stimulus_ns",
        "_newest_stimulus_ns",
        "_waits",
        "left_since_ns",
        "_rule",
        elements={"_waits": WaitLog, "_rule": ReleaseRule},
    )

    def __init__(
        self,
        writers: Sequence[Writer],
        *,
        readers: int = 1,
        rule: ReleaseRule = READY_ONLY,
        keeps_waits: bool = False,
    ) -> None:
        order = sorted(range(len(writers)), key=lambda w: (writers[w].port, writers[w].rank))
        keys = [(writers[w].port, writers[w].rank) for w in order]
        if not keys or len(set(keys)) != len(keys):
            raise SettingError(f"a gate needs writers with distinct (port, rank), got {keys}")
        self._place = {w: place for place, w in enumerate(order)}  # {writer: its tie order}
        self._order = order
        self._writers = [writers[w] for w in order]
        # {place that holds the frontier: how many writers' rows of that very time are ready};
        # its own too, unless it is mixed. With all idle no writer holds it, and all are.
        self._ties = [place + (not w.is_mixed) for place, w in enumerate(self._writers)]
        for port in {w.port for w in self._writers if w.is_shared}:
            # Rows of one time stand by the ranks that they carry, whichever input brings them: as
            # long as one of the port may send more of that time, none of it is ready.
            places = [place for place, w in enumerate(self._writers) if w.port == port]
            for place in places:
                self._ties[place] = places[0]
        self._ties.append(len(order) + 1)
        self._is_shared = any(w.is_shared for w in self._writers)  # then none of a time may follow
        self._keeps_promises = not any(w.is_mixed or w.may_be_late for w in self._writers)
        self._frontier = Frontier(len(order))
        self._readers = [ReaderState(self._writers) for _ in range(readers)]
        self._promise_stimulus_ns = START_NS
        self._newest_stimulus_ns = START_NS
        self._keeps_waits = keeps_waits and readers == 1
        self._waits = WaitLog() if self._keeps_waits else None
        self.left_since_ns: int | None = None
        self.set_rule(rule)

    @property
    def rule(self) -> ReleaseRule:
        """Rule of release, now."""
        return self._rule

    def set_rule(self, rule: ReleaseRule) -> None:
        """Release rows by another rule from the next read on. setSLT of [ssg] §4.1.

        Raises:
            SettingError: it has a hold by the clock, and waits are not kept.
        """
        if rule.hold_ns is not None and self._waits is None:
            raise SettingError(
                f"{rule.text}: a gate holds rows by the clock only where it is told when they "
                "come, as in a slot that takes samples, and has one reader"
            )
        self._rule = rule
        self._lead_ns, self._waits_in_full = rule.lead_ns, rule.waits_in_full

    def insert(
        self,
        writer: int,
        batch: Batch | None,
        progress: Progress,
        *,
        came_ns: int | None = None,
    ) -> None:
        """Take rows from a writer, and how far it is with them.

        Rows of one writer come in event-time order (mixed writers: in any). The promise becomes
        visible after the rows, as maxWriterTs does in [ssg] Algorithm 2.

        Args:
            writer: number of the writer.
            batch: its rows; None if it only says how far it is.
            progress: progress of the writer; no row is newer than its newest.
            came_ns: arrival of the rows by the clock, where waits are kept.
        """
        place, frontier = self._place[writer], self._frontier
        promise_ns, stimulus_ns, newest_ns, _ = progress
        if newest_ns > frontier.newest_ns:
            frontier.newest_ns = newest_ns
            self._newest_stimulus_ns = (
                stimulus_ns if batch is None else batch.stimulus_time_ns.item(-1)
            )
        frontier.advance(place, promise_ns)
        known_ns = self._promise_stimulus_ns
        self._promise_stimulus_ns = stimulus_ns if stimulus_ns > known_ns else known_ns
        if batch is not None and len(batch.event_time_ns):
            for reader in self._readers:
                reader.add(place, batch)
            if self._waits is not None and came_ns is not None:
                last_key, is_mixed = self._readers[0].last_key, self._writers[place].is_mixed
                self._waits.add(place, batch, came_ns, is_mixed=is_mixed, last_key=last_key)

    def read(
        self, reader: int = 0, *, limit: int | None = None, now_ns: int | None = None
    ) -> GateRead | None:
        """Return the rows that this reader may have now, in order; None if nothing changed.

        Args:
            reader: number of the reader.
            limit: about how many rows at most (more only where that many share one time);
                read again for the rest. With 1 the next row alone, or those of one writer and
                time (late: of one time). Late rows come first, and others once they are out.
            now_ns: time by the clock. All rows up to the newest that has waited for the whole hold
                leave, as slack-ready whatever the slack: event time may stand still.

        Source: getSSGTuple, [ssg] Algorithm 3, for all rows that it would return in a row.
        """
        cut, ready = self._cuts()
        waits, hold_ns = self._waits, self._rule.hold_ns
        if waits is not None and hold_ns is not None and now_ns is not None:
            due_ns = waits.due(now_ns - hold_ns)
            if due_ns is not None:
                cut = max((due_ns, len(self._order)), cut)
        state = self._readers[reader]
        if limit is not None and state.rows > limit and self._is_ready_final:
            state.merge_ahead(min(cut, ready), limit)
        released = state.release(cut, ready, limit)
        if waits is not None:
            self.left_since_ns = waits.left(state.cut, has_late=state.has_late)
        return None if released is None else self._timed(released, state, ready[0])

    def _timed(self, released: GateRead, reader: ReaderState, frontier_ns: int) -> GateRead:
        """Say with a read how far it is."""
        by_promise = released.watermark_ns <= frontier_ns
        stimulus_ns = self._promise_stimulus_ns if by_promise else self._newest_stimulus_ns
        released.progress = Progress(reader.frontier_ns, stimulus_ns, self._frontier.newest_ns)
        return released

    def hold_ends_ns(self) -> int | None:
        """Return when a row must leave by the clock; None if never."""
        if self._rule.hold_ns is None:
            return None
        oldest_ns = self.waiting_since_ns
        return None if oldest_ns is None else oldest_ns + self._rule.hold_ns

    @property
    def waiting_since_ns(self) -> int | None:
        """Time at which the oldest row held came; None if none is held, or unknown."""
        return None if self._waits is None else self._waits.oldest_ns()

    def may_release(self, reader: int = 0) -> bool:
        """Whether this reader could have rows now, late ones apart, without an insert."""
        cut, _ = self._cuts()
        return self._readers[reader].has_before(cut)

    @property
    def _is_ready_final(self) -> bool:
        """Whether no row follows that comes before one that is ready now."""
        return self._keeps_promises and not self._frontier.idle

    def _cuts(self) -> tuple[Cut, Cut]:
        """Return (rows before it may leave, rows before it are ready)."""
        frontier_ns, holder = self._frontier.minimum()
        ready = (frontier_ns, self._ties[holder])
        lead_ns, newest_ns = self._lead_ns, self._frontier.newest_ns
        if lead_ns is None or newest_ns == START_NS:
            return ready, ready
        cut_ns = newest_ns - lead_ns  # newest − t > slack  ⇔  t < newest − slack
        if cut_ns > frontier_ns or (self._waits_in_full and frontier_ns != END_NS):
            return (cut_ns, 0), ready
        return ready, ready

    def mark_idle(self, writer: int) -> None:
        """Do not wait for a silent writer until it speaks again."""
        self._frontier.mark_idle(self._place[writer])

    def mark_awake(self, writer: int) -> None:
        """Wait again for a writer marked idle, although it has not spoken."""
        self._frontier.advance(self._place[writer], START_NS)

    def move_by_clock(self, time_ns: int, now_ns: int) -> None:
        """Let event time go on to `time_ns` while all writers are silent."""
        frontier = self._frontier
        if time_ns > max(frontier.clock_ns, frontier.newest_ns):
            frontier.clock_ns = min(time_ns, END_NS - 1)
            self._promise_stimulus_ns = max(self._promise_stimulus_ns, now_ns)

    @property
    def all_are_silent(self) -> bool:
        """Whether all writers are idle or have ended, and one may wake up."""
        return bool(self._frontier.idle) and self._frontier.silent == len(self._writers)

    @property
    def idle(self) -> set[int]:
        """The writers that are left out until they speak again."""
        return {self._order[place] for place in self._frontier.idle}

    def nothing_new(self) -> GateRead:
        """Return a read of the first reader without rows, as far as its last."""
        reader = self._readers[0]
        return self._timed(reader.nothing_new(), reader, END_NS)

    def held(self) -> list[Batch]:
        """Return the rows that the first reader has not had yet, late ones too."""
        return self._readers[0].held()

    @property
    def has_single_speaker(self) -> bool:
        """Whether all writers but one, or all, are idle or have ended."""
        return self._frontier.silent >= len(self._writers) - 1

    @property
    def ended_wait(self) -> bool:
        """Whether rows of writers that have ended wait for others to promise more."""
        _, ready = self._cuts()
        return any(
            self._frontier.promises_ns[place] == END_NS and (lane.head_ns, place) >= ready
            for reader in self._readers
            for place, lane in enumerate(reader.lanes)
            if lane.rows
        )

    @property
    def frontier_ns(self) -> int:
        """merge_ts: everything older has been inserted. START_NS before all have promised."""
        return self._frontier.minimum()[0]

    @property
    def ready(self) -> Cut:
        """The cut of what is ready: all rows before it are."""
        return self._cuts()[1]

    @property
    def newest_ns(self) -> int:
        """max_ts: the newest event time inserted; START_NS before the first."""
        return self._frontier.newest_ns

    def use_ns(self, writer: int) -> int:
        """Return what a writer must promise to let a row of the first reader's go.

        END_NS: nothing less than its end does, for it has promised enough, or nothing is held.
        """
        oldest_ns, promised_ns = self._readers[0].oldest_ns(), self.promised_ns(writer)
        if promised_ns > oldest_ns or oldest_ns == END_NS:
            return END_NS
        # As far as the row first: a writer that is not waited for has no credit.
        return oldest_ns + (self._is_shared and promised_ns == oldest_ns)

    def promised_ns(self, writer: int) -> int:
        """Return what a writer has promised."""
        return self._frontier.promises_ns[self._place[writer]]

    @property
    def rows_held(self) -> int:
        """Rows that some reader has not had yet."""
        if len(self._readers) == 1:
            return self._readers[0].rows
        return max(reader.rows for reader in self._readers)

    def rows_held_of(self, writer: int) -> int:
        """Rows of one writer that some reader has not had yet."""
        place = self._place[writer]
        return max(reader.rows_of(place) for reader in self._readers)

    def place_of(self, writer: int) -> int:
        """Return a writer's place in the tie order."""
        return self._place[writer]

    def holders(self) -> list[int]:
        """Return the writers whose promise everybody waits for."""
        return sorted(self._order[place] for place in self._frontier.holders())

    def counts(self, reader: int = 0) -> ReaderState:
        """Return a reader's counters: ready, slack_ready, late."""
        return self._readers[reader]

    @property
    def is_ended(self) -> bool:
        """Whether every writer has ended and every reader has had everything."""
        return self.frontier_ns == END_NS and self.rows_held == 0

    def derive(self) -> None:
        """Log waits from now on, and derive the needs of reads from the rule."""
        if self._keeps_waits and self._waits is None:
            self._waits = WaitLog()
        self.set_rule(self._rule)
