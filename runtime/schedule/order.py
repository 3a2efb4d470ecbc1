"""Which of a slot's stages goes next, and which message of a stage: a policy over what is seen.

Source: [mace] Def. 7 for the order by stimulus, which rules unless `Limits(order=…)` is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class StageView(NamedTuple):
    """A stage that has work, and credit for what comes of it.

    Attributes:
        name: of the stage.
        kind: source, merge, gate, join, aggregate, stateless or sink.
        stimulus_ns: the earliest stimulus time of what waits there; of a source when its next event
            was due. START_NS: it was cut short and has to go on.
        progress_ns: how far a source has promised; START_NS for other stages.
        rows: how many wait in its queue and its gate; of a source none are known.
    """

    name: str
    kind: str
    stimulus_ns: int
    progress_ns: int
    rows: int


class PathView(NamedTuple):
    """A path into a stage on which a message waits.

    Attributes:
        name: of the channel.
        source: the stage that feeds it.
        stimulus_ns: the stimulus time of the message at its head.
        came_ns: when that came.
        rows: that it has; 0 of one that only promises.
        messages: how many wait on the path.
    """

    name: str
    source: str
    stimulus_ns: int
    came_ns: int
    rows: int
    messages: int


class Order(Protocol):
    """One way to choose. Pure: views in, one of them out; it is asked before each slice.

    A stage that is never chosen while others can run waits for ever.
    """

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the one of these, at least two, whose slice is next."""
        ...


class PathOrder(Protocol):
    """What an order may have besides: it chooses within a stage, too.

    On one path messages never overtake. A path that is never chosen while others have messages
    keeps its promises back, and gates wait for those.
    """

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        """Return the one of these, at least two, whose first message goes on next."""
        ...


class StimulusOrder:
    """The earliest stimulus first; of sources the one that is behind, of equals as in the plan."""

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the one whose stimulus is the earliest."""
        del now_ns
        return min(stages, key=lambda one: (one.stimulus_ns, one.progress_ns))

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        """Return the one whose first message has the earliest stimulus."""
        del now_ns
        return min(paths, key=lambda one: one.stimulus_ns)
