"""Q2 by our operator: what a decision to drop is held against besides a matcher as the paper's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.espice.options import Quotes
from slackwater.runtime.model import Batch, GateRead, Int64Array, Progress
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.registry.operators import make_operator

READ = 10_000
"""Events of a read."""


class OwnMatcher:
    """The operator over quotes, which sheds nothing.

    Args:
        of: the quotes.
        count: n.
        size: events of a window; one opens with each rising or falling quote of a leading contract.

    Attributes:
        pairs: of events and windows.
    """

    def __init__(self, of: Quotes, count: int, size: int) -> None:
        flow = sw.Dataflow("own")
        times: Int64Array = np.arange(len(of.contract))
        columns = {
            "time": times,
            "contract": of.contract,
            "change": of.change,
            "is_leading": of.is_leading,
        }
        lead = sw.patterns.event("lead", where=sw.col("is_leading"))
        signs = (sw.col("change") > 0, sw.col("change") < 0)
        moves = (sw.patterns.event(f"re{at}", where=sign) for at, sign in enumerate(signs))
        built = flow.source(
            "rows", sw.table(pa.table(columns)), event_time="time", time_unit="ns"
        ).pattern(
            sw.patterns.either(
                *(
                    sw.patterns.seq(lead, sw.patterns.any_of(count, one, distinct="contract"))
                    for one in moves
                )
            ),
            window=sw.patterns.opened_by(lead, events=size),
            matches=1,
        )
        self._step = flow.steps[built.name]
        self._reads = []
        for begin in range(0, len(times), READ):
            part = slice(begin, begin + READ)
            batch = Batch(
                event_time_ns=times[part],
                stimulus_time_ns=times[part],
                columns={name: one[part] for name, one in columns.items()},
            )
            last_ns = times[part].item(-1)
            self._reads.append(GateRead([batch], [None], last_ns, Progress(last_ns, 0)))
        starts = np.flatnonzero(of.is_leading)
        self.pairs = int(np.minimum(len(times) - starts, size).sum())

    def operator(self) -> Operator:
        """Return an operator that has seen nothing."""
        return make_operator(self._step)

    def match(self, operator: Operator) -> None:
        """Let it take all reads."""
        for read in self._reads:
            operator.work(read, 0)
