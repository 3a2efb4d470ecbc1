"""What work and distance cost in the simulator: seeded, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from slackwater.runtime.control import Decider
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.schedule import Slice

_T = TypeVar("_T")

_SAVED = 0.9
"""Of what a row costs, what is saved if it is passed over."""


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """How long a slice of work takes: per slice, per row and per comparison, varied at random.

    Attributes:
        per_slice_ns: fixed cost of a slice, >= 0.
        per_row_ns: cost of a row, >= 0, when it is worked on: when a source hands it over, or when
            it goes on to a stage's operator, which a gate may let it do long after it came.
            `stages` sets it for single stages: {stage: ns}; that of a step with replicas is that
            of each replica, here and in all other settings. A row that a pattern passes over under
            load costs a tenth of it.
        slices: the same for `per_slice_ns`: {stage: ns}.
        per_comparison_ns: cost of each pair that a join compares, or, in a pattern that sheds, of
            an event and a window that it is not dropped of, >= 0; counted in `per_row_ns` as long
            as this is 0.
        jitter: each slice takes between 1 and 1 + jitter times as long, >= 0.
        compared: the same for `per_comparison_ns`: {stage: ns}.
        results: what a row that leaves costs besides: {stage: ns}.
        load: what a stage's slices take changes over time: {stage: (virtual ns) -> how many times
            as long, >= 0}.
    """

    per_slice_ns: float = 50_000
    per_row_ns: float = 250
    stages: Mapping[str, float] = field(default_factory=dict)
    slices: Mapping[str, float] = field(default_factory=dict)
    per_comparison_ns: float = 0.0
    compared: Mapping[str, float] = field(default_factory=dict)
    results: Mapping[str, float] = field(default_factory=dict)
    jitter: float = 0.0
    load: Mapping[str, Callable[[int], float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        costs = [self.per_slice_ns, self.per_row_ns, self.per_comparison_ns, self.jitter]
        for each in (self.stages, self.slices, self.compared, self.results):
            costs += each.values()
        if min(costs) < 0:
            raise SettingError(f"costs cannot be negative: {self}")

    def for_stages(self, stages: Iterable[Stage]) -> CostModel:
        """Return the model in which what is given of a step is given of its replicas, too."""
        replicas = [(one.name, one.origin) for one in stages if one.replica is not None]

        def with_replicas(given: Mapping[str, _T]) -> dict[str, _T]:
            own = {name: given[step] for name, step in replicas if step in given}
            return {**own, **given}

        return replace(
            self,
            stages=with_replicas(self.stages),
            slices=with_replicas(self.slices),
            compared=with_replicas(self.compared),
            results=with_replicas(self.results),
            load=with_replicas(self.load),
        )

    def begin(self) -> None:
        """Nothing is measured."""

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return how long a slice that begins now takes in virtual time."""
        return sum(self._part_ns(part, rng, now_ns=now_ns) for part in done.parts)

    def _part_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int) -> int:
        if done.has_read:  # a row costs what it does, its reading included
            return 0
        stage = done.stage
        cost = self.slices.get(stage, self.per_slice_ns)
        rows = done.released - _SAVED * (done.passed_over or 0)
        cost += rows * self.stages.get(stage, self.per_row_ns)
        cost += done.comparisons * self.compared.get(stage, self.per_comparison_ns)
        cost += done.results * self.results.get(stage, 0.0)
        if stage in self.load:
            cost *= self.load[stage](now_ns)
        return max(1, round(cost * (1 + self.jitter * rng.random())))


@dataclass(frozen=True, slots=True)
class MeasuredSlice:
    """What a slice did, and how long that took.

    Attributes:
        stage: that ran.
        rows: that it took in; a message without rows counts as one.
        took_ns: by the clock that was given.
        released: rows that went on to its operator; a gate may let rows go with a later slice.
        results: rows that left.
        comparisons: pairs that a join compared.
    """

    stage: str
    rows: int
    took_ns: int
    released: int = 0
    results: int = 0
    comparisons: int = 0

    @classmethod
    def of(cls, done: Slice, took_ns: int) -> MeasuredSlice:
        """Return what a slice did."""
        return cls(done.stage, done.rows, took_ns, done.released, done.results, done.comparisons)


class MeasuredCost:
    """Costs that are what the work takes in truth: virtual time goes by a real clock.

    Args:
        clock_ns: of the CPU, or of the wall.

    Attributes:
        slices: all there were, in their order.
    """

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._since_ns = 0
        self.slices: list[MeasuredSlice] = []

    def for_stages(self, stages: Iterable[Stage]) -> MeasuredCost:
        """Return this: nothing is told of stages."""
        del stages
        return self

    def begin(self) -> None:
        """Note when a slice begins."""
        self._since_ns = self._clock_ns()

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return how long the slice has taken."""
        del rng, now_ns
        took_ns = max(1, self._clock_ns() - self._since_ns)
        self.slices += [MeasuredSlice.of(*share) for share in done.shares(took_ns)]
        return took_ns


class NotedCost(MeasuredCost):
    """Costs of a model, which are noted as if they had been measured."""

    def __init__(self, model: CostModel) -> None:
        super().__init__(lambda: 0)
        self._model = model

    def for_stages(self, stages: Iterable[Stage]) -> NotedCost:
        """Return costs by the model of these stages, noted in the same list."""
        made = NotedCost(self._model.for_stages(stages))
        made.slices = self.slices
        return made

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return how long the model says."""
        took_ns = self._model.slice_ns(done, rng, now_ns=now_ns)
        self.slices += [MeasuredSlice.of(*share) for share in done.shares(took_ns)]
        return took_ns


@dataclass(frozen=True, kw_only=True)
class LinkModel:
    """How long a message travels between slots; messages of one channel never overtake.

    ```
    slot ──▶ queue ──▶ so many bytes a second ──▶ delay, jitter ──▶ slot of another node
    ```

    From each node to each other goes a link. Where it has a capacity, what waits for it goes in
    stimulus order, as [mace] §VII-B takes it. Rows alone weigh anything (`Batch.nbytes`): neither
    the header of a message nor credit does. Between slots of one node there is only the delay.

    Attributes:
        delay_ns: the least, >= 0.
        jitter_ns: up to this much more, drawn per message, >= 0.
        bytes_per_s: what the link from one node to another carries, > 0; None: any number.
        between: another model for some links: {(from node, to node): its model}.
    """

    delay_ns: int = 100_000
    jitter_ns: int = 0
    bytes_per_s: float | None = None
    between: Mapping[tuple[str, str], LinkModel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.delay_ns, self.jitter_ns) < 0:
            raise SettingError(f"delays cannot be negative: {self}")
        if self.bytes_per_s is not None and not 0 < self.bytes_per_s < float("inf"):
            raise SettingError(
                f"a link of bytes_per_s={self.bytes_per_s} carries nothing or anything; give a "
                "finite number above 0, or None for a link that carries any number"
            )
        if any(one.between for one in self.between.values()):
            raise SettingError("a model in `between` is of one link: it has no `between` itself")

    @property
    def least_delay_ns(self) -> int:
        """The least that a message travels, over all links."""
        return min([self.delay_ns, *(one.delay_ns for one in self.between.values())])

    def of(self, source: str, target: str) -> LinkModel:
        """Return the link from one node to another."""
        return self.between.get((source, target), self)

    def check_nodes(self, nodes: Sequence[str]) -> None:
        """Refuse a link of nodes that are not there.

        Raises:
            SettingError: one is not.
        """
        odd = [name for pair in self.between for name in pair if name not in nodes]
        if odd:
            raise SettingError(
                f"`between` has a link of node {odd[0]!r}, which is not there; there are "
                f"{', '.join(nodes)}"
            )

    def travel_ns(self, rng: np.random.Generator) -> int:
        """Return one message's time on the link."""
        return self.delay_ns + (int(rng.integers(0, self.jitter_ns + 1)) if self.jitter_ns else 0)


@dataclass(frozen=True, kw_only=True)
class TunerModel:
    """How a tuner fares: by itself beside the slots it is told at once, and never dies.

    Attributes:
        link: how long what is asked, answered and told travels; these may overtake each other, and
            weigh nothing. None: no time.
        takes_ns: how long a decision takes, >= 0.
        deaths_ns: when it dies, and when another takes its place: ((from, until), …), ascending.
        successor: makes the policy of one that takes its place, of the samples that were heard.
            None: a copy of the first, as it was before it began.
    """

    link: LinkModel | None = None
    takes_ns: int = 0
    deaths_ns: tuple[tuple[int, int], ...] = ()
    successor: Callable[[Sequence[StageSample]], Decider] | None = None

    def __post_init__(self) -> None:
        times = [at_ns for death in self.deaths_ns for at_ns in death]
        if self.takes_ns < 0 or times != sorted(set(times)):
            raise SettingError(f"{self}: no decision takes less than no time, and deaths ascend")
