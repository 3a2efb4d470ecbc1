"""The shedding of one operator: it measures the load, and its detector and shedder decide.

Load is known from three things: the operator's clock, the stimulus times of what comes (how quickly
events arrive, and how old the oldest is), and how long its slices took.

```
look(rows)         what is measured ──▶ the detector's verdict ──▶ the shedder aims at its amount
drop(pairs)        which go         ──▶ counted
learn(windows)     the model; f, if it is to be found
counts             figures of the report
```
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.counts import SheddingCounts, is_known
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.losses import Judged, Losses
from slackwater.runtime.shedding.overload import (
    Load,
    OverloadDetector,
    PassingOver,
    Verdict,
    choose_f,
    verdict_of,
)
from slackwater.runtime.shedding.probes import ONE_OF, Block, Probes, is_quick_to_judge
from slackwater.runtime.shedding.settings import SheddingSettings
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.spans import Dropped, Spans
from slackwater.runtime.shedding.windows import FinishedWindows, Places

_LOOKS = 64
"""Looks at the load in as long as the bound."""
_LOOKS_A_GUESS = 8
"""While anything is dropped, its cost in matches is guessed again after so many looks."""
NOTHING = "nothing: stretches"
_MOST_SPELLS = 256
_LEAST_BUFFERED = 1_024.0
MOST_MATCHES = 512
MOST_EVENTS = 256
"""The most events that are kept of a match; those of a longer one are evenly chosen."""
_Match = tuple[int, Int64Array, Int64Array, Int64Array | None, float]
"""A match: its window's size, its events' types, positions, features, and what each stands for."""
_LIKELY_SHARE = 1 / 6
"""The share of events to be dropped, until known: at an overload by 20 %, R1 of [espice] §4.1."""


class Shedding:
    """The shedding of one operator: its load, its decisions, and the counts of both.

    Args:
        settings: the settings that the user wrote.
        repetitions: {code of a type: how often it stands in the pattern}.

    Attributes:
        shedder: decides which pairs are dropped.
        detector: decides how much is dropped.
    """

    STATE = Fields(
        "shedder",
        "detector",
        "_matches",
        "_verdict",
        "_turns",
        "_starts",
        "_uncured",
        "_aimed",
        "_ranked",
        "_looked_ns",
        "_arrived",
        "_processed",
        "_busy_ns",
        "_most_age_ns",
        "_newest_ns",
        "_before_ns",
        "_idle_ns",
        "_idle_before_ns",
        "_pairs",
        "_dropped",
        "_shed",
        "_work",
        "_seen",
        "_lost",
        "_kept_share",
        "_looks",
        "_losses",
        "_probes",
        "_events",
        "_began_ns",
        "_reason",
        "_age_ns",
        "_slowest_ns",
        "_rest_ns",
        "_passing",
        "_spells",
        elements={"_verdict": verdict_of},
    )

    def __init__(self, settings: SheddingSettings, repetitions: Mapping[int, int]) -> None:
        self._settings = settings
        self._bound_ns = settings.overload.latency_ns
        self._drops = settings.drops
        self.shedder = settings.shedder(repetitions)
        self.detector = OverloadDetector(settings.overload)
        self._matches = RecentMatches()
        self._verdict: Verdict | None = None
        self._turns = 0  # turns of the model that f was found from
        self._starts = self._uncured = 0
        self._aimed = 0.0  # pairs that were to be dropped
        self._ranked: dict[str, int] = {}  # {ranking: pairs}
        self._passing = PassingOver(settings.drops)
        self._looked_ns: int | None = None
        self._arrived = self._processed = self._busy_ns = 0  # since the last look
        self._idle_ns = self._idle_before_ns = 0  # of the slot: so far, and as of the last look
        self._most_age_ns = 0  # the most age with which a row came since the last look
        self._newest_ns = self._before_ns = 0  # stimulus times: of all, and as of the last look
        self._pairs = self._dropped = self._shed = 0
        self._work = [0, 0]  # the units of work so far, and the dropped ones of these
        self._seen = [0, 0]  # both, as of the last look
        self._lost = [0.0, 0.0]  # pairs with something to drop; of matches lost, by pairs
        self._kept_share: float | None = None  # the expected share of matches at the present amount
        self._losses = Losses()
        is_by_pair = settings.drops == "pairs"
        self._probes = Probes(least=ONE_OF // 2 if is_by_pair else ONE_OF, has_gaps=not is_by_pair)
        self._events = 0  # events that came so far
        self._began_ns: int | None = None  # when the load was first too much
        self._looks = 0
        self._age_ns = 0  # the age of the last rows when they came
        self._slowest_ns = (0, 0)  # of the slowest event: its age when it came, its slice's time
        self._rest_ns = 0  # how long events take downstream of this operator, as last told
        self._reason = ""
        self._spells: list[list[int]] = []

    @property
    def kept(self) -> int:
        """The work so far: events, or pairs of events and windows, whichever are dropped."""
        return self._work[0] - self._work[1]

    @property
    def shed(self) -> int:
        """Events so far that no window of theirs kept."""
        return self._shed

    @property
    def is_on(self) -> bool:
        """Whether anything is to be dropped now."""
        return self.shedder.amount is not None

    @property
    def is_dropping(self) -> bool:
        """Whether single events, or pairs of them and windows, are dropped now."""
        return self.is_on and self._drops != "stretches"

    @property
    def size(self) -> int:
        """The number of events of a window, as far as is known, at least 1."""
        return max(round(self.shedder.size), 1)

    def took(self, took_ns: int, idle_ns: int) -> None:
        """Note how long the last slice took, and the slot's idle time so far."""
        self._slowest_ns = max(self._slowest_ns, (self._age_ns, took_ns), key=sum)
        self._busy_ns += took_ns
        self._idle_ns = idle_ns
        self._processed = self._arrived

    def reckon_with(self, rest_ns: int) -> None:
        """Count the time that events take downstream of this operator, up to egress."""
        self._rest_ns = max(rest_ns, 0)

    def look(self, rows: Batch, now_ns: int) -> None:
        """Observe rows that come, and decide what is dropped, if it is time to."""
        oldest_ns = rows.stimulus_time_ns.min().item()
        self._age_ns = now_ns - oldest_ns
        self._slowest_ns = max(self._slowest_ns, (self._age_ns, 0), key=sum)
        # Not its age now: rows of the last slices are done, and where few come, long since.
        self._most_age_ns = max(self._most_age_ns, self._age_ns)
        before_ns = self._looked_ns
        if before_ns is None:
            self._newest_ns = oldest_ns
        if before_ns is None or now_ns - before_ns >= self._bound_ns // _LOOKS:
            self._observe(now_ns, rows)
        # The next look observes these: how many came, and in how long, of the same rows.
        self._arrived += len(rows)
        self._newest_ns = max(self._newest_ns, rows.stimulus_time_ns.max().item())

    def _observe(self, now_ns: int, rows: Batch) -> None:
        """Look at the load, before these rows are worked on."""
        work, dropped = (now - then for now, then in zip(self._work, self._seen, strict=True))
        verdict = self.observe(
            Load(
                now_ns=now_ns,
                arrived=self._arrived,
                # Rows wait; when they reached us tells how quickly they come.
                came_ns=self._newest_ns - self._before_ns,
                # The cost of rows that are not looked at tells nothing of the others.
                processed=0 if self._passing.is_on else self._processed,
                busy_ns=self._busy_ns,
                dropped_share=dropped / work if work else 0.0,
                pairs=work,
                is_passing=self._passing.is_on,
                age_ns=self._most_age_ns,
                youngest_ns=now_ns - rows.stimulus_time_ns.max().item(),
                idle_ns=max(self._idle_ns - self._idle_before_ns, 0),
                rest_ns=self._rest_ns,
                between_ns=self._bound_ns // _LOOKS,
                read_ns=round(len(rows) * self.detector.cost_ns),
            )
        )
        if verdict.is_overloaded and self._began_ns is None:
            self._began_ns = now_ns
            self._probes.begin(self._events)
        self._passing.decide(verdict)
        if self.has_begun:
            is_known_well = is_known(self._losses.matches, 2 * self._losses.error)
            self._probes.set_rate(self.detector.cost_ns, is_known_well=is_known_well)
        if not verdict.is_curable:
            self._reason = verdict.reason
        if verdict.amount is not None or self._passing.is_on:
            if not self._spells or self._spells[-1][1] < (self._looked_ns or 0):
                self._spells.append([now_ns, now_ns, 0])
                del self._spells[:-_MOST_SPELLS]
            self._spells[-1][1] = now_ns
            if self._drops == "pairs" and self._looks % _LOOKS_A_GUESS == 0:
                self._kept_share = self.kept_share
            self._looks += 1
        self._before_ns, self._idle_before_ns = self._newest_ns, self._idle_ns
        self._looked_ns, self._seen = now_ns, list(self._work)
        self._arrived = self._processed = self._busy_ns = 0
        self._most_age_ns = 0

    def observe(self, load: Load) -> Verdict:
        """Return how much is dropped from now on."""
        before, verdict = self._verdict, self.detector.observe(load, size=self.shedder.size)
        self._verdict = verdict
        self._starts += verdict.is_overloaded and not (before and before.is_overloaded)
        self._uncured += not verdict.is_curable
        self.shedder.aim(verdict.amount)
        self._choose_f()
        return verdict

    def _choose_f(self) -> None:
        """Find f again if the model has changed; not in the midst of shedding."""
        learning, verdict = self.shedder.learning, self._verdict
        model = learning.learnt
        if (
            self._settings.overload.f is None
            and self._settings.drops == "pairs"  # there it says how large partitions are
            and model is not None
            and learning.turns != self._turns
            and model.is_trained
            and verdict is not None
            and verdict.q_max
            and not verdict.is_overloaded
        ):
            self._turns = learning.turns
            over = 1 - verdict.throughput / verdict.rate if verdict.rate else 0.0
            self.detector.f = choose_f(
                model.utilities,
                model.expected,
                q_max=verdict.q_max,
                share=max(over, _LIKELY_SHARE),
            )

    @property
    def kept_share(self) -> float | None:
        """The share of matches that are expected whole at the present amount.

        None if nothing is known of matches.
        """
        return self._matches.kept_share(self.shedder, explore=self._settings.model.explore)

    def drop(self, known: Int64Array, spans: Spans, *, events: Int64Array) -> Dropped:
        """Return which pairs are dropped; see `EventKinds` and `Shedder.drop_spans`."""
        return self.shedder.drop_spans(known[0], spans, events=events, features=feature_of(known))

    def would_drop(
        self, known: Int64Array, positions: Int64Array, *, events: Int64Array, size: int
    ) -> BoolArray:
        """Return which pairs of events and a window would be dropped; they are not counted."""
        shedder = self.shedder
        chances = shedder.loss_of(known[0], positions, sizes=size, features=feature_of(known))
        return shedder.drawn(chances, events)

    @property
    def knows_windows(self) -> bool:
        """Whether enough windows have ended to know their length."""
        return self._probes.knows_windows

    @property
    def has_begun(self) -> bool:
        """Whether the load has ever been too much."""
        return self._began_ns is not None

    def may_judge(self, block: int, events: int) -> bool:
        """Return whether a slice judges a trial; if not, its block is left out.

        Nothing else is done meanwhile: it takes half of what the bound leaves above its start.

        Args:
            block: the block of a tried window that is over.
            events: the noted events of all trials that this slice judges, with this one.
        """
        spare_ns = (1 - self.detector.f) * self._bound_ns / 2
        if is_quick_to_judge(events, spare_ns):
            return True
        self._losses.omit(block)
        return False

    def judged(self, block: int, stands_for: float, losses: Judged, *, in_gap: bool) -> None:
        """Count the losses of a window that was tried; see `Losses.add`."""
        self._losses.add(block, stands_for, **losses._asdict(), in_gap=in_gap)

    def keeps_whole(self, window: int, size: int) -> bool:
        """Return whether nothing is dropped of a window of so many events, whatever the load.

        A window whose work alone can break the bound is not kept whole.
        """
        is_drawn = bool(self.shedder.keeps_whole(np.array([window]))[0])
        return is_drawn and self.detector.fits_whole(size)

    def samples(self, windows: Int64Array) -> BoolArray:
        """Return which windows are sampled: all of their events are learnt."""
        return self.shedder.samples(windows)

    @property
    def is_passing_over(self) -> bool:
        """Whether rows are not looked at."""
        return self._passing.is_on

    @property
    def passed_over(self) -> int:
        """Rows so far that were not looked at."""
        return self._passing.rows

    def pass_over(self, rows: int) -> None:
        """Count rows that are not looked at."""
        self._shed += rows
        self._passing.rows += rows

    def blocks(self, first: int, end: int) -> list[Block]:
        """Return blocks among the events [first, end): tried windows begin with these.

        Nothing is tried before the load has ever been too much.
        """
        self._events = end
        return self._probes.blocks(first, end) if self.has_begun else []

    def came(self, first: int, end: int, blocks: list[Block], *, in_gap: bool) -> None:
        """Count the events [first, end), and those of blocks: passed over, or looked at."""
        if not self.has_begun:
            return
        self._losses.came(end - first, in_gap=in_gap)
        for one in blocks:
            rows = min(one.end, end) - max(one.first, first)
            self._losses.block_rows(one.number, one.stands_for, rows, in_gap=in_gap)

    def opened(self, windows: int, rows: int, fit: int) -> None:
        """Count windows that opened, the rows that these opened among, and those that fit."""
        self._probes.opened(windows, rows, fit)

    def ended(self, first: int, end: int | None, size: int) -> None:
        """Note a window that is over.

        Args:
            first: the number of its first event, among all events.
            end: the number of the first event of its key after it; None if none came.
            size: the number of its events.
        """
        self._probes.ended((self._events if end is None else end) - first, size)

    @property
    def share(self) -> float:
        """The share of the work that is to be dropped now."""
        amount = self.shedder.amount
        return 0.0 if amount is None else amount.share

    @property
    def is_by_window(self) -> bool:
        """Whether the worth of an event depends on the windows that it is in."""
        return self.shedder.is_by_window

    @property
    def buffered(self) -> float:
        """Events that may come before the bound is at risk: [espice]'s dropping interval."""
        detector = self.detector
        cost_ns = detector.cost_ns or 1.0
        return min(max((1 - detector.f) * self._bound_ns / cost_ns, _LEAST_BUFFERED), 1e6)

    def worths(
        self, known: Int64Array, positions: Int64Array, *, sizes: Int64Array
    ) -> FloatArray | None:
        """Return the worth of pairs; see `EventKinds` and `Shedder.worths`."""
        return self.shedder.worths(known[0], positions, sizes=sizes, features=feature_of(known))

    def count_work(self, events: int) -> None:
        """Count events that are worked on, none of which is dropped."""
        self._work[0] += events

    def count_events(self, pairs: int, dropped: int, *, asked: int, shed: int) -> None:
        """Count the pairs of some events, and those events that were asked for, and shed."""
        self._count(pairs, dropped, shed, work=(asked, shed))

    def count_pairs(self, pairs: int, dropped: int, shed: int) -> None:
        """Count the pairs of some events, and those events that no window keeps."""
        self._count(pairs, dropped, shed, work=(pairs, dropped))

    def _count(self, pairs: int, dropped: int, shed: int, *, work: tuple[int, int]) -> None:
        self._pairs += pairs
        self._dropped += dropped
        self._shed += shed
        self._work = [self._work[0] + work[0], self._work[1] + work[1]]
        if self.shedder.amount is not None:
            self._aimed += self.shedder.amount.share * work[0]
            by = self.shedder.ranked_by
            self._ranked[by] = self._ranked.get(by, 0) + work[0]
        if self.is_on and pairs:
            if self._spells:
                self._spells[-1][2] += dropped
            if self._kept_share is not None:
                self._lost[0] += pairs
                self._lost[1] += pairs * (1 - self._kept_share)

    def learn(self, finished: FinishedWindows) -> None:
        """Learn from windows that are over, and lost nothing."""
        self.shedder.learn(finished)
        self._matches.learn(finished)

    @property
    def counts(self) -> SheddingCounts:
        """The counts of shedding so far."""
        learning, settings = self.shedder.learning, self._settings
        feature, lost_shares = settings.feature, learning.lost_shares
        return SheddingCounts(
            pairs=self._pairs,
            dropped=self._dropped,
            aimed=self._aimed,
            shed=self._shed,
            starts=self._starts,
            began_ns=self._began_ns,
            uncured=self._uncured,
            reason=self._reason or self._slow_event(),
            slowest_ns=sum(self._slowest_ns),
            rest_ns=self._rest_ns,
            passed_over=self._passing.rows,
            latency_ns=self._bound_ns,
            f=self.detector.f,
            is_trained=self.shedder.is_trained,
            ranked_by=self.shedder.ranked_by if settings.ranks else NOTHING,
            ranked=dict(self._ranked) if settings.ranks else {},
            feature="" if feature is None else str(feature),
            compared=learning.compared,
            compared_lost=None if lost_shares is None else list(lost_shares),
            models=learning.turns,
            changes=learning.changes,
            judged_windows=self._losses.windows,
            judged_matches=self._losses.matches,
            judged_lost_share=self._losses.lost_share,
            judged_false_share=self._losses.false_share,
            judged_error=self._losses.error,
            most_lost_share=self._lost[1] / self._lost[0] if self._lost[0] else None,
            spells=[list(one) for one in self._spells],
        )

    def _slow_event(self) -> str:
        """Return where the slowest event was while the bound was broken, or ""."""
        if sum(self._slowest_ns) <= self._bound_ns:
            return ""
        age_ns, took_ns = self._slowest_ns
        return (
            f"the slowest event was {format_ns(age_ns)} old when its slice began, and that took "
            f"{format_ns(took_ns)}"
        )


def places_of(parts: list[tuple[int, Int64Array, Int64Array]]) -> Places:
    """Return pairs of (index of the window, what is known of events, their positions)."""
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return Places(none, none, none)
    known = np.concatenate([one for _, one, _ in parts], axis=1)
    return Places(
        np.repeat([index for index, _, _ in parts], [len(at) for _, _, at in parts]),
        known[0],
        np.concatenate([positions for _, _, positions in parts]),
        feature_of(known),
    )


def feature_of(known: Int64Array) -> Int64Array | None:
    """Return the codes of features; None if events have none."""
    return known[1] if len(known) > 1 else None


class RecentMatches:
    """The newest matches of windows that nothing was dropped of: they predict what dropping costs.

    Each is kept with the places of its events. Against the chances of now: a match is lost if any
    of its events is dropped, and with it every other one of its window that it is in.

    Args:
        most: the most matches that are kept.
    """

    STATE = Fields("_matches")

    def __init__(self, most: int = MOST_MATCHES) -> None:
        self._matches: deque[_Match] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._matches)

    def learn(self, finished: FinishedWindows) -> None:
        """Remember the matches of windows that are over."""
        ends = np.flatnonzero(np.diff(finished.matches, append=-1)) + 1
        begins = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        last = max(len(ends) - (self._matches.maxlen or 0), 0)  # older ones would be pushed out
        hits = finished.hits
        for begin, end in zip(begins[last:].tolist(), ends[last:].tolist(), strict=True):
            places = np.arange(begin, end)
            if len(places) > MOST_EVENTS:
                places = begin + np.arange(MOST_EVENTS) * (end - begin) // MOST_EVENTS
            self._matches.append(
                (
                    int(finished.sizes[hits.windows[begin]]),
                    hits.types[places],
                    hits.positions[places],
                    None if hits.features is None else hits.features[places],
                    (end - begin) / len(places),
                )
            )

    def kept_share(self, shedder: Shedder, *, explore: float) -> float | None:
        """Return the share of matches that is expected whole; None if none is remembered.

        Of a window that is shed a match lasts if none of its events is dropped, each by a draw of
        its own. A match that takes the place of a lost one is not known here: the share of
        windows that still have one may be higher.

        Args:
            shedder: shedder whose chances count.
            explore: the share of windows of which nothing is dropped.
        """
        if not self._matches:
            return None
        counts = np.array([len(one[1]) for one in self._matches])
        features = [one[3] for one in self._matches]
        lost = shedder.loss_of(
            np.concatenate([one[1] for one in self._matches]),
            np.concatenate([one[2] for one in self._matches]),
            sizes=np.repeat([one[0] for one in self._matches], counts),
            features=None
            if any(one is None for one in features)
            else np.concatenate([one for one in features if one is not None]),
        )
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(1.0 - lost, 0.0))
        logs *= np.repeat([one[4] for one in self._matches], counts)
        whole = np.exp(np.add.reduceat(logs, np.cumsum(counts) - counts))
        return explore + (1.0 - explore) * float(whole.mean())
