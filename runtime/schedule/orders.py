"""Orders besides the stimulus one: priorities, and stimulus order by subintervals.

Each is a value: it chooses by the views alone, so a snapshot of a slot has all that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.model.times import Duration, duration_ns
from slackwater.runtime.nearest import choices
from slackwater.runtime.schedule.order import Order, PathView, StageView, StimulusOrder
from slackwater.runtime.shown import a_kind, shown

_BY_STIMULUS = StimulusOrder()


@dataclass(frozen=True)
class Priorities:
    """Higher numbers go first; of equals the earliest stimulus.

    A stage waits for as long as one of a higher priority has work. A step's priority is that of all
    its parts, but a part with a priority of its own, such as "join.gate", keeps that.

    Args:
        of: {step, or part: its priority}, any numbers; steps not named have 0.

    Raises:
        SettingError: a priority is not a number.
    """

    of: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name, priority in self.of.items():
            if isinstance(priority, bool) or not isinstance(priority, Real):
                raise SettingError(
                    f"priority {shown(priority)} of step {name!r} is {a_kind(priority)}; "
                    "write a number: higher ones go first, and steps not named have 0"
                )

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the one of the highest priority."""
        del now_ns
        return min(
            stages,
            key=lambda stage: (
                -self._priority(stage.subject),
                stage.stimulus_ns,
                stage.progress_ns,
            ),
        )

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        """Return the path that comes from the step of the highest priority."""
        del now_ns
        return min(paths, key=lambda path: (-self._priority(path.source), path.stimulus_ns))

    def _priority(self, subject: Subject) -> float:
        return self.of.get(subject.name, self.of.get(subject.step, 0))


@dataclass(frozen=True)
class CoarseStimulus:
    """Stages run in stimulus order across subintervals, in any other order within one.

    Latency then exceeds the estimate by up to the work of a subinterval instead of that of an
    event. Source: [mace] §VII-A.

    Args:
        width: width of a subinterval, > 0, such as "100ms" or a number of seconds.
        within: chooses among stages whose earliest stimulus is in one subinterval.

    Raises:
        SettingError: the width is not a length of time above 0, or `within` is not an order.
    """

    width: Duration
    within: Order

    def __post_init__(self) -> None:
        duration_ns(self.width, what="width", positive=True)
        if not callable(getattr(self.within, "first", None)):
            raise SettingError(
                f"within={shown(self.within)} is {a_kind(self.within)} without "
                "first(stages, "
                'now_ns); give an order, such as sw.schedule.Priorities({"alarms": 1})'
            )

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the first, by the other order, of those in the earliest subinterval."""
        earliest = min(self._subinterval(stage) for stage in stages)
        among = [stage for stage in stages if self._subinterval(stage) == earliest]
        return among[0] if len(among) == 1 else self.within.first(among, now_ns)

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        """Return the first path by that rule; by stimulus if it chooses no paths."""
        earliest = min(self._subinterval(path) for path in paths)
        among = [path for path in paths if self._subinterval(path) == earliest]
        chosen = getattr(self.within, "first_path", _BY_STIMULUS.first_path)
        choice: PathView = among[0] if len(among) == 1 else chosen(among, now_ns)
        return choice

    def _subinterval(self, view: StageView | PathView) -> int:
        return view.stimulus_ns // self._width_ns

    @cached_property
    def _width_ns(self) -> int:
        return duration_ns(self.width)


def check_order(order: object, subjects: Iterable[Subject]) -> None:
    """Refuse priorities of steps that a flow does not have.

    Args:
        order: the order of `Limits`; the default if None.
        subjects: the subject of each stage of the flow's plan.

    Raises:
        SettingError: a name is neither a step with a stage nor a part of one; names the nearest.
    """
    while isinstance(order, CoarseStimulus):
        order = order.within
    if not isinstance(order, Priorities):
        return
    names = dict.fromkeys(name for subject in subjects for name in (subject.step, subject.name))
    for name in order.of:
        if name not in names:
            raise SettingError(
                f"order=Priorities names step {name!r}, which has no stage in the flow; "
                "a stateless step has one only with Limits(fuse=False); "
                f"{choices(name, names)}"
            )
