"""Order of work: a policy chooses a slot's next stage, and a stage's next message.

Source: [mace] Def. 7 for the order by stimulus, which rules unless `Limits(order=…)` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from slackwater.runtime.errors import OperatorError, SettingError
from slackwater.runtime.model import START_NS
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.model.whose_code import let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.nearest import listed
from slackwater.runtime.shown import shown


class StageView(NamedTuple):
    """A stage that has work, and credit for what comes of it.

    Attributes:
        subject: the step, or the part of it that the stage is.
        kind: source, merge, gate, join, aggregate, stateless or sink.
        stimulus_ns: the earliest stimulus time of what waits there; of a source when its next event
            was due; of a gate that was cut short that of what it has just released.
        progress_ns: how far a source has promised; START_NS for other stages.
        rows: rows that wait in its queue and its gate; of a source none are known.
        came_ns: arrival of the message that has waited longest in its queue; of a source, and where
            a gate or an operator is due by the clock, as stimulus_ns.
        turn: the number of its last slice among the slot's, which count from 1; 0: it had none.
    """

    subject: Subject
    kind: str
    stimulus_ns: int
    progress_ns: int
    rows: int
    came_ns: int = START_NS
    turn: int = 0

    @property
    def name(self) -> str:
        """Name of the stage: of the step, or of the part of it."""
        return self.subject.name


class PathView(NamedTuple):
    """A path into a stage on which a message waits.

    Attributes:
        name: name of the channel.
        source: the step, or the part of it, that feeds the channel.
        stimulus_ns: the earliest stimulus time of what waits there, which is lent to what stands
            before it.
        came_ns: arrival of the message at its head.
        rows: rows of the message; 0 for a message that only promises.
        messages: messages that wait on the path.
    """

    name: str
    source: Subject
    stimulus_ns: int
    came_ns: int
    rows: int
    messages: int


class Order(Protocol):
    """Order of work: views in, one of them out. It is asked before each slice.

    A stage that is never chosen while others can run waits for ever.
    """

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the one of these, at least two, whose slice is next."""
        ...


class PathOrder(Protocol):
    """Order that chooses within a stage, too.

    On one path messages never overtake. A path that is never chosen while others have messages
    keeps its promises back, and gates wait for those.
    """

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        """Return the one of these, at least two, whose first message goes on next."""
        ...


_View = TypeVar("_View", StageView, PathView)


def choice(
    ask: Callable[[Sequence[_View], int], _View], views: Sequence[_View], now_ns: int, *, at: str
) -> _View:
    """Return the view that an order chooses.

    Args:
        ask: `first` or `first_path` of the user's order.
        views: views that it is shown.
        now_ns: time by the slot's clock.
        at: place where it chooses, for errors: a slot, or a stage.

    Raises:
        OperatorError: it has raised.
        SettingError: it has chosen what it was not shown.
    """
    name = getattr(ask, "__name__", "first")
    order = type(getattr(ask, "__self__", ask)).__name__
    try:
        chosen = ask(views, now_ns)
        is_shown = chosen in views
    except BaseException as problem:
        let_ctrl_c_pass(problem)
        place, lines = where_raised(problem)
        raise OperatorError(
            f"{at}: {name}() of order={order} {raised(problem)}{place}; mend it, or leave out "
            f"Limits(order=…)\n{lines}"
        ) from problem
    if not is_shown:
        what = "stages" if name == "first" else "paths"
        raise SettingError(
            f"{at}: order={order} chose {shown(chosen)}, which is none of the {what} that it was "
            f"shown ({listed([view.name for view in views])}); let {name}() return one of them"
        )
    return chosen


@dataclass(unsafe_hash=True)  # not frozen: others may be made of it
class StimulusOrder:
    """Order by the earliest stimulus, then the least promise, then the plan."""

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the one whose stimulus is the earliest."""
        del now_ns
        return min(stages, key=lambda stage: (stage.stimulus_ns, stage.progress_ns))

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        """Return the one on which the earliest stimulus waits."""
        del now_ns
        return min(paths, key=lambda path: path.stimulus_ns)
