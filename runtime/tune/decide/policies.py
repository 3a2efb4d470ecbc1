"""Simple slack policies: rivals of the tuner, which users may pick.

Source: [ssg] §6, "SLTuner Evaluation": static, max timestamp (K-slack [16]), TCP adaptation [17];
§2.2 and [8] for ready-only. The even split is ours: what an engineer would do without the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, ReleaseRule, format_ns
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.predict.forecast import STEADY_S, mean_rise
from slackwater.runtime.tune.record.paths import Paths, measured_ns

RESERVE_NS, RESERVE = 150_000_000, 0.025


def deadline_margin_ns(deadline_ns: int) -> int:
    """Return the margin that each rule keeps back: 150 ms, or 2.5 % if less.

    It covers what whole seconds do not show: slack is event time, and the clock sees it later.
    """
    return round(min(RESERVE_NS, RESERVE * deadline_ns))


class StaticSlack:
    """Policy that never changes its rule.

    Args:
        paths: paths of the flow.
        rule: ready-only is ScaleGate; a rule that waits in full is a K-slack buffer, which knows no
            promises: [ssg] §1, after C. Mutschler and M. Philippsen (IPDPS 2013).
    """

    def __init__(self, paths: Paths, rule: ReleaseRule) -> None:
        self._paths, self._rule = paths, rule

    @property
    def name(self) -> str:
        """Text of its slack."""
        slack_ns = self._rule.slack_ns
        if slack_ns is None:
            return self._rule.text
        kind = "K-slack" if self._rule.waits_in_full else "static"
        return f"{kind} {format_ns(slack_ns)}"

    def begin(self) -> Sequence[SetRelease]:
        """Set the rule once."""
        return [SetRelease(step, self._rule, by=self.name) for step in self._paths.tuned]

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Change nothing."""
        del second, samples
        return []


class LargestDelay:
    """Policy whose slack is the largest skew seen, max_ts − merge_ts.

    The skew is that at the end of a second.

    Source: "max timestamp" of [ssg] §6, after C. Mutschler and M. Philippsen (IPDPS 2013); the K
    of K-slack.
    """

    name = "largest delay"

    def __init__(self, paths: Paths) -> None:
        self._largest_ns = dict.fromkeys(paths.tuned, 0)

    def begin(self) -> Sequence[SetRelease]:
        """Set no slack before the first second."""
        return [SetRelease(step, ReleaseRule.slack(0), by=self.name) for step in self._largest_ns]

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Raise the slack to the largest skew."""
        del second
        changed = []
        for step, largest_ns in self._largest_ns.items():
            sample = samples.get(step)
            if sample is not None and sample.skew_ns > largest_ns:
                self._largest_ns[step] = sample.skew_ns
                changed.append(SetRelease(step, ReleaseRule.slack(sample.skew_ns), by=self.name))
        return changed


class Aimd:
    """Policy of additive increase and multiplicative decrease.

    It adds a second to the slack when latency fell, and halves it when latency grew.

    Source: "TCP adaptation" of [ssg] §6, after C. Mutschler and M. Philippsen (DEBS 2013).

    Args:
        paths: paths of the flow.
        start_ns: slack of the start.
        step_ns: the step that is added; 1,000 ms in the paper.
    """

    name = "aimd"

    def __init__(self, paths: Paths, *, start_ns: int, step_ns: int = NS_PER_SECOND) -> None:
        self._paths, self._step_ns = paths, step_ns
        self._slack_ns = start_ns
        self._latency_ns: float | None = None

    def begin(self) -> Sequence[SetRelease]:
        """Set the first slack."""
        return self._set()

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Compare the flow's latency with that of the last second with work."""
        del second
        if not any(sample.rows for sample in samples.values()):
            return []  # a gate that holds all its rows has not become faster
        before, self._latency_ns = self._latency_ns, self._paths.latency_ns(measured_ns(samples))
        if before is None or self._latency_ns == before:
            return []
        grown = self._latency_ns > before
        self._slack_ns = self._slack_ns // 2 if grown else self._slack_ns + self._step_ns
        return self._set()

    def _set(self) -> Sequence[SetRelease]:
        rule = ReleaseRule.slack(self._slack_ns)
        return [SetRelease(step, rule, by=self.name) for step in self._paths.tuned]


Expects = Callable[[Sequence[float], "float | None"], float]
"""(latencies of a step in its last `SECONDS` seconds with work, the newest last; the expectation
before the newest, or None) -> its next expected latency, all in ns. A module's function, or a
`partial` of one, so that a policy can be pickled."""

SECONDS = STEADY_S + 1
RISES = 4
"""Factor on the last rise, for the trend."""
STEADY_RISES = 3
"""Factor on the mean rise of two seconds: a setting has its effect a second later, and on rows that
it made wait in the second after; and one more, since rising load may rise faster."""
FADES = 0.9
"""Rest of a maximum after a second, whatever the interval."""
FORGETS = 0.99
"""Rest of a slow maximum after a second: half after a minute."""


def the_most(took_ns: Sequence[float], before_ns: float | None) -> float:
    """Expect the largest latency so far."""
    return took_ns[-1] if before_ns is None else max(took_ns[-1], before_ns)


def the_last(took_ns: Sequence[float], before_ns: float | None) -> float:
    """Expect the last latency."""
    del before_ns
    return took_ns[-1]


def the_trend(took_ns: Sequence[float], before_ns: float | None) -> float:
    """Expect the last latency plus `RISES` times its rise."""
    del before_ns
    return took_ns[-1] + RISES * max(took_ns[-1] - took_ns[-2:][0], 0.0)


def the_steady_trend(took_ns: Sequence[float], before_ns: float | None) -> float:
    """Expect the last latency plus `STEADY_RISES` times its mean rise over two seconds.

    The largest latency of a second is a matter of chance; of two seconds less so.
    """
    del before_ns
    return took_ns[-1] + STEADY_RISES * mean_rise(took_ns)


def the_fading_most(
    took_ns: Sequence[float], before_ns: float | None, *, left: float = FADES
) -> float:
    """Expect the largest latency, which fades to the share `left` in each interval."""
    return took_ns[-1] if before_ns is None else max(took_ns[-1], left * before_ns)


class EvenSplit:
    """Policy that splits the deadline, less the rest of the path, evenly.

    Args:
        paths: paths of the flow.
        deadline_ns: deadline of the flow.
        name: name of the policy in reports.
        expects: expected latency of each step of the rest, after each second in which it worked.
        holds: set the shares as holds by the clock, beyond the paper, not as slacks.
        margin_ns: margin kept back besides; see `deadline_margin_ns`.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        deadline_ns: int,
        name: str = "even split",
        expects: Expects = the_most,
        holds: bool = False,
        margin_ns: int = 0,
    ) -> None:
        self.name = name
        self._paths, self._deadline_ns = paths, deadline_ns
        self._expects, self._holds, self._margin_ns = expects, holds, margin_ns
        self._took_ns: dict[Subject, tuple[float, ...]] = {}  # {step: latencies, the newest last}
        self._expected_ns: dict[Subject, float] = {}  # {step: expected latency}

    def begin(self) -> Sequence[SetRelease]:
        """Set slacks as if the rest of the path, not measured yet, took no time."""
        return self._set()

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Measure the rest of the path, and split the remaining deadline."""
        del second
        for step, took_ns in measured_ns(samples).items():
            if samples[step].rows:
                latencies_ns = (*self._took_ns.get(step, ()), took_ns)[-SECONDS:]
                self._took_ns[step] = latencies_ns
                before_ns = self._expected_ns.get(step)
                self._expected_ns[step] = self._expects(latencies_ns, before_ns)
        return self._set()

    def _set(self) -> Sequence[SetRelease]:
        budget_ns = max(self._deadline_ns - self._margin_ns, 0)
        shares = self._paths.even_split_ns(self._expected_ns, budget_ns)
        rule_of = ReleaseRule.hold if self._holds else ReleaseRule.slack
        return [SetRelease(step, rule_of(ns), by=self.name) for step, ns in shares.items()]


SPLITS: Mapping[str, tuple[Expects, bool]] = {
    "even split": (the_most, False),
    "last second, by the clock": (the_last, True),
    "trend-following": (the_trend, True),
    "steady trend": (the_steady_trend, True),
    "decaying maximum": (the_fading_most, True),
    "slowly decaying maximum": (partial(the_fading_most, left=FORGETS), True),
}
"""{name: (expected latency of the rest of the path, whether the shares are holds by the clock)},
for intervals of a second; for other intervals `_FADING` is scaled by their length."""
_FADING = {"decaying maximum": FADES, "slowly decaying maximum": FORGETS}


def make_split(
    paths: Paths, name: str, *, deadline_ns: int, interval_ns: int = NS_PER_SECOND
) -> EvenSplit:
    """Return a policy of `SPLITS`, with the margin that every rule keeps back.

    Rises are those between intervals: a rule has its effect an interval after it was set.
    """
    expects, holds = SPLITS[name]
    if name in _FADING and interval_ns != NS_PER_SECOND:
        left = _FADING[name] ** (interval_ns / NS_PER_SECOND)
        expects = partial(the_fading_most, left=left)
    return EvenSplit(
        paths,
        deadline_ns=deadline_ns,
        name=name,
        expects=expects,
        holds=holds,
        margin_ns=deadline_margin_ns(deadline_ns),
    )


class Calibration:
    """Policy of random slacks, for samples of all: the calibration run of [ssg] §6.

    Args:
        paths: paths of the flow.
        most_ns: largest slack that is allowed.
        every_s: seconds for which each slack stays; an interval at least.
        interval_ns: length of the samples.
        seed: seed of the draws.
    """

    name = "calibration"

    def __init__(
        self,
        paths: Paths,
        *,
        most_ns: int,
        every_s: int = 5,
        interval_ns: int = NS_PER_SECOND,
        seed: int = 0,
    ) -> None:
        self._paths, self._most_ns = paths, most_ns
        self._stays = max(every_s * NS_PER_SECOND // interval_ns, 1)  # intervals
        self._rng = np.random.default_rng(seed)
        self._next = self._stays

    def begin(self) -> Sequence[SetRelease]:
        """Draw the first slacks."""
        return self._draw()

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Draw new slacks when due."""
        del samples
        if second + 1 < self._next:
            return []
        self._next = second + 1 + self._stays
        return self._draw()

    def _draw(self) -> Sequence[SetRelease]:
        drawn = self._rng.integers(0, self._most_ns, len(self._paths.tuned), endpoint=True)
        return [
            SetRelease(step, ReleaseRule.slack(int(slack_ns)), by=self.name)
            for step, slack_ns in zip(self._paths.tuned, drawn, strict=True)
        ]
