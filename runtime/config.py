"""Settings of a job: unit, range and reason beside each default."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from datetime import timedelta
from numbers import Integral, Real
from types import NoneType
from typing import Any

from slackwater.runtime.calls import checked_fields
from slackwater.runtime.errors import SettingError
from slackwater.runtime.pluggable import Pluggable
from slackwater.runtime.shown import a_kind, shown


@checked_fields
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of memory and of slices, and settings of the scheduler.

    All numbers must be at least 1, `log` apart.
    """

    credit_rows: int = 131_072
    """Most rows under way on one channel. Twice as many as the longest slice hands over: while one
    is at work, the next is on its way; and few enough (a few MB) that its source feels a slow stage
    at once."""

    gate_rows: int = 262_144
    """Rows that a gate holds for one writer before it stops granting credit to it. The writer that
    holds back the frontier always gets credit: without it the gate would stop for ever."""

    most_gate_rows: int = 16_777_216
    """Most rows that a gate holds for that writer: more end the job. Some 2 GB of a dozen columns,
    of an input that sends rows and promises nothing; an input that ends before may have as many."""

    most_kept_rows: int = 4_194_304
    """Rows that a join with keep="promise" holds (each of its replicas) for late partners. Beyond
    it the oldest are dropped as with keep="slack", which holds as many as its window has. About
    1 GB of a dozen columns a side: hours of a city's buses, if one source stops. A pattern or a
    `followed_by` that needs more for its open matches ends the job; so does a pattern with more
    matches in one read."""

    slice_ns: int = 2_000_000
    """Length of a slice of work with a short fixed part, about: 2 ms, so that batching adds no more
    than that to the latency of waiting rows. Source: [mace] §VI-A, batching."""

    longest_slice_ns: int = 20_000_000
    """Length of a slice of rows that have waited for 100 ms, or of one with a fixed part of 4 ms:
    20 ms, but no more than a tenth of the flow's deadline
    (`runtime/schedule/slice_size.py`, docs/decisions/2026-11-29-slices.md)."""

    min_slice_rows: int = 1_000
    """Fewest rows of a slice: below it, overhead dominates. The default gives way to a smaller
    `max_slice_rows`."""

    max_slice_rows: int = 65_536
    """Most rows of a slice; sources hand over at most as many."""

    source_gap_ns: int = 350_000
    """Least time between two looks at the paced sources of a slot, all together. Meanwhile several
    events gather: at 10,000 events a second three or four, for which the slot wakes once, and each
    waits for 0.2 ms on average. Why so long: docs/decisions/2026-11-25-cost-at-the-clock.md."""

    promise_gap_ns: int = 100_000
    """Silence of a channel to another slot before it carries a promise without rows, for each such
    channel of the slot: with 64 of them 6.4 ms. So a slot sends at most 20,000 such messages a
    second, however many replicas it feeds; a promise that alone lets a row go waits for so long
    (docs/decisions/2026-11-30-paced-promises.md)."""

    still_ns: int = 30_000_000_000
    """Time without a row or promise after which a stage stands still, and the job reports what it
    waits for. It covers two polls of a feed at 12 s, and a busy machine's pauses."""

    lost_ns: int = 30_000_000_000
    """Silence of a worker's process after which it is lost, and the job fails, or goes back to a
    checkpoint; a tenth more passes until it is noticed. It covers a snapshot of a virtual machine
    and a process that is stopped or swapped out. With checkpoints a loop that stands still while
    its process uses no CPU time counts as silent, too. A process that ends, and a host that does
    not answer, are noticed within 5 s."""

    spool_bytes: int = 2**30
    """Bytes on disk of the rows of a source that is read once, in a job with checkpoints: at this
    size its input is not read until a checkpoint lets older rows go. 1 GiB: at 100 bytes a row and
    checkpoints each second some 2 million rows a second."""

    spool_wait_ns: int = 60_000_000_000
    """Time for which such an input is not read, or its rows cannot be written, before the job ends
    with an error. It covers a disk that is full for a while, and some checkpoints that fail."""

    log: int = 0
    """Number of each slot's last stimuli that are kept whole, to replay them
    (`runtime/schedule/stimulus_log.py`) and find a fault: they have every row that came to the
    slot. 0: no stimuli; the last 20 are kept as text in any case, for the report of a failure."""

    order: Any = None
    """Order of a slot's stages: an object with `first(stages, now_ns)`, which returns one of the
    given views (`runtime/schedule/order.py`); if it also has `first_path(paths, now_ns)`, that
    chooses the path whose message a stage takes next. If None, the earliest stimulus first, except
    for sources that a gate waits for (`runtime/schedule/backlog.py`)."""

    fuse: bool = True
    """Whether stateless steps run in the stage that feeds them, with no queue between: less work
    for the scheduler. False: each is a stage, which can be placed, timed and scheduled by itself,
    like the operators of [mace]."""

    def __post_init__(self) -> None:
        if self.order is not None and not callable(getattr(self.order, "first", None)):
            raise SettingError(
                f"order={shown(self.order)} is {a_kind(self.order)} without first(stages, "
                "now_ns), which returns the one of the stages that goes next; or leave it out"
            )
        for field in fields(self):
            if field.name in ("order", "fuse"):
                continue
            value, least = getattr(self, field.name), 0 if field.name == "log" else 1
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


@checked_fields
@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Settings of how the slacks of a flow with a deadline are set.

    Attributes:
        policy: "sltuner" ([ssg] §5.2); or, to compare, "even split", "last second, by the clock",
            "trend-following", "steady trend", "decaying maximum", "slowly decaying maximum",
            "largest delay", "aimd", "fixed wait", "ready-only", or a slack, such as "500ms", for a
            static one; "calibration" draws slacks, for a history to begin with. Or a custom policy:
            an object with `begin()` and `decide(second, samples)`, of which each job gets a copy,
            or a function (or a class) that makes one from the flow's graph; see
            docs/custom-policy.md.
        probability: least probability of keeping the deadline in a second, by the
            estimator's own uncertainty, in [0.5, 1).
        predictor: "gp" (Gaussian process) or "linear". Or a custom one: an object with `fit(x, y)`
            and `predict(x)`, of which each model is a copy, or a function (or a class) that makes
            one from a seed.
        window_s: most seconds of samples that train the models.
        retrain_s: seconds between two trainings.
        alpha: α of [ssg] Eq. 10: slacks are raised when more than this share of the deadline is
            left.
        history: a folder that keeps samples across jobs of the same flow, on the tuner's host;
            None if samples are not kept.
        seed: seed of random draws.
        interval: length of the samples that the policy decides on; "sltuner" takes only seconds.
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
        """Name of the policy in reports until it is made."""
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
                raise SettingError(f"{name}={shown(value)} is {a_kind(value)}; write {example}")
        if not 0.5 <= self.probability < 1:
            raise SettingError(f"probability={self.probability} must be in [0.5, 1), such as 0.99")
        if self.seed < 0:
            raise SettingError(f"seed={self.seed} must be zero or more, such as 7")
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
