"""Every setting of ours: unit, range and reason beside each default."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from datetime import timedelta
from numbers import Integral, Real
from types import NoneType
from typing import Any

from slackwater.runtime.errors import SettingError
from slackwater.runtime.pluggable import Pluggable


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What bounds memory and the length of a slice, and what is a stage.

    All numbers must be at least 1, `log` apart.
    """

    credit_rows: int = 65_536
    """Rows that may be under way on one channel. As many as the longest slice hands over: enough
    to keep a link busy, little enough (a few MB) for its source to feel a slow stage at once."""

    gate_rows: int = 262_144
    """Rows that a gate holds for one writer before it stops granting credit to it. The writer
    that everybody waits for is always granted: stopping it would stop the gate for ever."""

    most_gate_rows: int = 16_777_216
    """Rows that a gate holds for that one: more end the job. Some 2 GB of a dozen columns, of an
    input that sends on and promises nothing; one that ends before may have as many."""

    most_kept_rows: int = 4_194_304
    """Rows that a join with keep="promise" holds (each of its replicas) for what may still be
    late. Beyond it the oldest go as with keep="slack", which holds as many as its window has.
    About 1 GB of a dozen columns a side: hours of a city's buses, should one source stop. A
    pattern, or a `followed_by`, that needs more for matches to come ends the job; so does a
    pattern in the matches of one read."""

    slice_ns: int = 2_000_000
    """A slice of work is cut so that it takes about this long: 2 ms, so batching adds no more
    than that to the latency of what waits behind it. Source: [mace] §VI-A, batching."""

    backlog_slice_ns: int = 4_000_000
    """The same in a slot to which all comes from sources of its own that read what is there
    already, as fast as they go (files and tables: neither replays at the speed of a clock nor what
    may be live): 4 ms, if that is more. Whatever waits there waits for all that was there before
    it, and half as many slices cost less: docs/decisions/2026-11-25-cost-at-the-clock.md."""

    min_slice_rows: int = 1_000
    """But a slice never gets fewer rows than this: below it, overhead is all there is. Unless given
    it gives way to a smaller `max_slice_rows`."""

    max_slice_rows: int = 65_536
    """Nor more than this; the sources hand over at most as many."""

    source_gap_ns: int = 350_000
    """Paced sources are asked at most this often, all of a slot together. Between two looks several
    events gather: at 10,000 events a second three or four, for which the slot wakes once, and each
    waits for 0.2 ms on average. Why so long: docs/decisions/2026-11-25-cost-at-the-clock.md."""

    still_ns: int = 30_000_000_000
    """A job of which nothing has moved for so long says so, and whom it waits for. Two polls of a
    feed of every 12 s fit, and a busy machine's pauses; longer ones are worth a word."""

    log: int = 0
    """Stimuli of each slot that are kept whole, the last so many, to be replayed
    (`runtime/schedule/stimulus_log.py`): to find a fault, since every row that comes to the slot
    is in it. 0: none; the last 20 are kept in words, for the report of a failure, in any case."""

    order: Any = None
    """Which stage of a slot goes next: an object with `first(stages, now_ns)`, which returns one of
    the views that it is given (`runtime/schedule/order.py`); if it has `first_path(paths, now_ns)`,
    too, that says which path's message a stage takes next. None: the earliest stimulus first,
    but for sources that a gate waits for (`runtime/schedule/backlog.py`)."""

    fuse: bool = True
    """Whether steps that look at each row alone run in the stage of what feeds them, with no queue
    between: less work for the scheduler. False: each is a stage, which can be placed, timed and
    scheduled by itself, as [mace] has its operators."""

    def __post_init__(self) -> None:
        if not isinstance(self.fuse, bool):
            raise SettingError(f"fuse={self.fuse!r} is a {type(self.fuse).__name__}; write a bool")
        if self.order is not None and not callable(getattr(self.order, "first", None)):
            raise SettingError(
                f"order={self.order!r} is a {type(self.order).__name__} without first(stages, "
                "now_ns), which returns the one of the stages that goes next; or leave it out"
            )
        for field in fields(self):
            if field.name in ("order", "fuse"):
                continue
            value, least = getattr(self, field.name), 0 if field.name == "log" else 1
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise SettingError(
                    f"{field.name}={value!r} is a {type(value).__name__}; write a whole number"
                )
            if value < least:
                raise SettingError(f"{field.name}={value} must be at least {least}")
        if self.max_slice_rows < self.min_slice_rows != type(self).min_slice_rows:
            raise SettingError(
                f"min_slice_rows={self.min_slice_rows:,} is above max_slice_rows="
                f"{self.max_slice_rows:,}; give a smaller one, or leave it out"
            )


POLICY = Pluggable(
    name="policy",
    calls={"begin": "begin()", "decide": "decide(second, samples)"},
    made_from="the flow's graph",
    hint="a name such as 'even split', or a slack such as '500ms'",
)
PREDICTOR = Pluggable(
    name="predictor",
    calls={"fit": "fit(x, y)", "predict": "predict(x)"},
    made_from="a seed",
    hint="'gp' or 'linear'",
)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How the slacks of a flow with a deadline are set.

    Attributes:
        policy: "sltuner" ([ssg] §5.2); or, to compare, "even split", "last second, by the clock",
            "trend-following", "steady trend", "decaying maximum", "slowly decaying maximum",
            "max timestamp", "tcp", "k-slack", "ready-only", or a slack, such as "500ms", for a
            static one; "calibration" draws slacks, for a history to begin with. Or one of your own:
            an object with `begin()` and `decide(second, samples)`, of which each job gets a copy,
            or a function (or a class) that makes one from the flow's graph; see
            docs/custom-policy.md.
        probability: how likely a second must be to keep the deadline, by the estimator's own
            uncertainty, in [0.5, 1).
        predictor: "gp" (Gaussian process) or "linear". Or one of your own: an object with
            `fit(x, y)` and `predict(x)`, of which each model is a copy, or a function (or a class)
            that makes one from a seed.
        window_s: how many seconds of samples the models are trained with at most.
        retrain_s: how often they are trained anew.
        alpha: of [ssg] Eq. 10: slacks are raised when more of the deadline than this is left.
        history: a folder that keeps samples across jobs of the same flow, on the tuner's host;
            None: nowhere.
        seed: of what is drawn.
        interval: how long the intervals are that it is shown and decides on; "sltuner" thinks in
            seconds, and takes no other.
    """

    policy: Any = "sltuner"
    probability: float = 0.99
    predictor: Any = "gp"
    window_s: int = 900
    retrain_s: int = 60
    alpha: float = 0.02
    history: str | os.PathLike[str] | None = None
    seed: int = 0
    interval: str | float | timedelta = "1s"

    @property
    def policy_name(self) -> str:
        """What reports call the policy until it was made."""
        own = self.policy
        if isinstance(own, str):
            return own
        return str(getattr(own, "name", None) or getattr(own, "__name__", type(own).__name__))

    def __post_init__(self) -> None:
        if not isinstance(self.policy, str):
            POLICY.check(self.policy)
        if not isinstance(self.predictor, str):
            PREDICTOR.check(self.predictor)
        for name, kinds, example in _KINDS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise SettingError(f"{name}={value!r} is a {type(value).__name__}; write {example}")
        if not 0.5 <= self.probability < 1:
            raise SettingError(f"probability={self.probability} must be in [0.5, 1), such as 0.99")
        if not 0 < self.alpha < 1:
            raise SettingError(f"alpha={self.alpha} must be between 0 and 1")
        if self.window_s < 60 or self.retrain_s < 1:
            raise SettingError(
                f"window_s={self.window_s} must be at least 60, retrain_s={self.retrain_s} at "
                "least 1"
            )
        if isinstance(self.predictor, str) and self.predictor not in ("gp", "linear"):
            raise SettingError(f"predictor={self.predictor!r} must be {PREDICTOR.hint}")


_KINDS: tuple[tuple[str, Any, str], ...] = (
    ("probability", Real, "a number such as 0.99"),
    ("window_s", Integral, "a whole number of seconds"),
    ("retrain_s", Integral, "a whole number of seconds"),
    ("alpha", Real, "a number such as 0.02"),
    ("history", (str, os.PathLike, NoneType), "the path of a folder, or None"),
    ("seed", Integral, "a whole number"),
    ("interval", (str, Real, timedelta), "a length of time such as '500ms'"),
)
