"""What a run's report says of shedding."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SheddingCounts:
    """What shedding has come to so far, in one operator.

    Attributes:
        pairs: of an event and a window that it is in.
        dropped: of these.
        aimed: of these, as many as were to be dropped.
        shed: events that no window of theirs kept.
        starts: times that shedding began.
        uncured: looks at the load after which dropping was known not to keep the bound.
        reason: why, the last time; "": it has always been enough.
        rest_ns: what events take behind the operator, up to egress, as it was last told.
        latency_ns: the bound.
        f: the share of it at which shedding starts.
        is_trained: whether events could be ranked; if not, they were dropped at random.
        models: times that the model was built.
        changes: times that the stream was found to be another.
        lost_share: of matches, those that are to be expected lost, in the mean while there was
            something to drop; None: there was not, or nothing is known.
        spells: [from, to, pairs dropped] of each time that something was dropped, the newest last,
            in ns of the operator's clock.
    """

    pairs: int = 0
    dropped: int = 0
    aimed: float = 0.0
    shed: int = 0
    starts: int = 0
    uncured: int = 0
    reason: str = ""
    rest_ns: int = 0
    latency_ns: int = 0
    f: float = 0.0
    is_trained: bool = False
    models: int = 0
    changes: int = 0
    lost_share: float | None = None
    spells: list[list[int]] = field(default_factory=list)
