"""Which of a slot's stages goes next: a policy over what can be seen of those that could run.

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


class Order(Protocol):
    """One way to choose. Pure: views in, one of them out; it is asked before each slice.

    A stage that is never chosen while others can run waits for ever.
    """

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the one of these, at least two, whose slice is next."""
        ...


class StimulusOrder:
    """The earliest stimulus first; of sources the one that is behind, of equals as in the plan."""

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        """Return the one whose stimulus is the earliest."""
        del now_ns
        return min(stages, key=lambda one: (one.stimulus_ns, one.progress_ns))
