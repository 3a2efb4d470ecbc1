"""A chain of K-slack buffers makes a stream for each slack, in order within it.

```
            K 1 s          1 s more         3 s more
stream ─▶ buffer ──┬──▶ buffer ──┬──▶ buffer ──▶ within 5 s
                   └▶ within 1 s └▶ within 2 s
```

A row is in one buffer at a time, so all of them together hold what the longest alone would. Source:
[thesis] §2.3.5, Fig. 2.10(c). Differs: the slacks are given; it has AQ-K-slack find each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, ReleaseRule, duration_ns
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.merge.step import MergeStep

S = TypeVar("S", bound=AnyStream)


def k_slack_chain(stream: S, *slacks: Duration) -> tuple[S, ...]:
    """Return the stream in order within each slack, each from the one before it.

    Rows that a buffer finds late leave it at once, out of order, and the next mends them if its
    slack reaches so far. Which are late depends on how many rows a read takes. The stream itself
    has to come as it is (`out_of_order="late"`, with a `disorder` of at least the longest slack):
    no buffer mends rows that a source drops.

    Args:
        stream: any; it feeds the first buffer.
        slacks: "1s", "2s", "5s": of event time, ascending, at least one.

    Raises:
        SettingError: none, zero, no length of time, or not ascending.
    """
    lengths_ns = _ascending_ns(slacks)
    flow = stream.flow
    buffers: list[S] = []
    for before_ns, slack_ns in pairwise([0, *lengths_ns]):
        # A gate releases a row once the newest is *more* than its slack ahead: hence 1 ns less.
        step = MergeStep(
            name=flow.name_for("in-order", None),
            inputs=(buffers[-1].name if buffers else stream.name,),
            schema=stream.schema,
            release=ReleaseRule.in_full(slack_ns - before_ns - 1),
        )
        flow.put(step)
        buffers.append(type(stream)(flow, step))
    return tuple(buffers)


def _ascending_ns(slacks: Sequence[Duration]) -> list[int]:
    lengths_ns = [
        duration_ns(one, what=f"k_slack_chain: slack {place + 1}", positive=True)
        for place, one in enumerate(slacks)
    ]
    if not slacks or any(after <= first for first, after in pairwise(lengths_ns)):
        raise SettingError(
            f"k_slack_chain: slacks {', '.join(map(repr, slacks)) or 'are missing'}; give at least "
            "one, each longer than the one before it, such as '1s', '2s', '5s'"
        )
    return lengths_ns
