"""The counts of shedding in a run's report."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.runtime.json_form import JsonObject

ENOUGH = 20
"""So many matches have to be judged before a share of them is reported."""
_MOST_ERROR = 0.025
"""The most standard error of that share: then it is known to five points."""


@dataclass(frozen=True)
class SheddingCounts(JsonObject):
    """Counts of shedding so far, in one operator.

    Attributes:
        pairs: pairs of an event and a window that it is in.
        dropped: pairs of these that were dropped.
        aimed: pairs of these that were to be dropped.
        shed: events that no window of theirs kept.
        starts: times that shedding began.
        began_ns: when it first began, by the operator's clock; None if it never has.
        uncured: looks at the load after which dropping was known not to keep the bound.
        reason: reason, the last time; "": it has always been enough.
        slowest_ns: the longest that an event has taken from its stimulus until it was worked on or
            dropped: latency, also of events without a result.
        rest_ns: the time of events downstream of the operator, up to egress, as last told.
        passed_over: events, of those that were shed, that were not looked at at all.
        latency_ns: the bound.
        f: the share of it at which shedding starts.
        is_trained: whether events could be ranked; if not, they were dropped at random.
        ranked_by: the ranking of events now: "utility (type, place)", "chance" and the like.
        ranked: {ranking: pairs}, while something was to be dropped.
        feature: the feature that the user allows events to be ranked by; "" without one.
        compared: matches that the models with and without it were held against before either had
            learnt from them, older ones counting less.
        compared_lost: the share of these that would have been lost without it, and with it, at
            about the amount dropped last; None if not known.
        models: times that the model was built.
        changes: times that the stream was found to be another.
        judged_windows: windows that opened after shedding first began, and that were looked through
            with and without what they lost.
        judged_matches: their matches, had nothing been dropped.
        judged_lost_share: the share of these that were not found.
        judged_false_share: matches that were found and are none, as a share of the true ones.
        judged_error: the standard error of the share that was not found.
        most_lost_share: the mean share of matches that lose an event, while there was something to
            drop, known from matches before; None if there was none, or nothing is known.
        spells: [from, to, pairs dropped] of each time that something was dropped, the newest last,
            in ns of the operator's clock.
    """

    pairs: int = 0
    dropped: int = 0
    aimed: float = 0.0
    shed: int = 0
    starts: int = 0
    began_ns: int | None = None
    uncured: int = 0
    reason: str = ""
    slowest_ns: int = 0
    rest_ns: int = 0
    passed_over: int = 0
    latency_ns: int = 0
    f: float = 0.0
    is_trained: bool = False
    ranked_by: str = "chance"
    ranked: dict[str, int] = field(default_factory=dict)
    feature: str = ""
    compared: float = 0.0
    compared_lost: list[float] | None = None
    models: int = 0
    changes: int = 0
    judged_windows: int = 0
    judged_matches: int = 0
    judged_lost_share: float = 0.0
    judged_false_share: float = 0.0
    judged_error: float = 1.0
    most_lost_share: float | None = None
    spells: list[list[int]] = field(default_factory=list)

    @property
    def is_judged(self) -> bool:
        """Whether enough matches were judged to say, to five points, what share is lost."""
        return is_known(self.judged_matches, self.judged_error)

    @property
    def lost_share(self) -> float | None:
        """The share of matches that are lost; None if not known to five points.

        Of windows that opened after shedding first began.
        """
        return self.judged_lost_share if self.is_judged else None

    @property
    def false_share(self) -> float | None:
        """The share of false matches among the true ones; None if not known."""
        return self.judged_false_share if self.is_judged else None


def is_known(matches: int, error: float) -> bool:
    """Whether a share of so many matches, with such a standard error, is known."""
    return matches >= ENOUGH and error <= _MOST_ERROR
