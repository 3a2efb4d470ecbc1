"""Orders to compare stimulus order with: first in first out, round robin, longest queue.

Each is a value: it chooses by the views alone, so a snapshot of a slot has all that it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import slackwater as sw


@dataclass(frozen=True)
class FifoOrder:
    """The message that came first goes first; a row of a source came when it was due."""

    def first(self, stages: Sequence[sw.schedule.StageView], now_ns: int) -> sw.schedule.StageView:
        """Return the stage whose oldest message has waited longest."""
        del now_ns
        return min(stages, key=lambda stage: (stage.came_ns, stage.progress_ns))

    def first_path(
        self, paths: Sequence[sw.schedule.PathView], now_ns: int
    ) -> sw.schedule.PathView:
        """Return the path whose first message came first."""
        del now_ns
        return min(paths, key=lambda path: path.came_ns)


@dataclass(frozen=True)
class RoundRobin:
    """Stages take turns: the stage whose last slice is longest ago goes first."""

    def first(self, stages: Sequence[sw.schedule.StageView], now_ns: int) -> sw.schedule.StageView:
        """Return the stage without a slice for longest; of several without any, as planned."""
        del now_ns
        return min(stages, key=lambda stage: stage.turn)


@dataclass(frozen=True)
class LongestQueue:
    """The stage with the most rows in its queue and its gate goes first; of equals by stimulus.

    A short queue waits while there is a longer one. Rows that a source has not read are in no
    queue, so a source with something due goes before all queues, as far as credit lets it.
    """

    def first(self, stages: Sequence[sw.schedule.StageView], now_ns: int) -> sw.schedule.StageView:
        """Return a source that has something, or the stage with the most rows."""
        del now_ns
        return min(
            stages,
            key=lambda stage: (
                stage.kind != "source",
                -stage.rows,
                stage.stimulus_ns,
                stage.progress_ns,
            ),
        )
