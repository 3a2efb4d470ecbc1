"""Beginnings of replays: the sources of a flow that are replayed begin at one arrival.

```
a   first row at 08:00:00.0 ─┐                        a   due at the start
b   first row at 08:00:00.6 ─┴─▶ begins 08:00:00.0    b   due 0.6 s after it, at speed=1
c   start="own"                                       c   due at the start
```

They are worked out with the plan, which carries them to whichever slot replays a source. A flow
that replays one source opens no input for this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.model import format_ns
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SourceStep, sources_among
from slackwater.runtime.sources.blocks import BlockReader
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["FAR_NS", "Beginning", "beginning_lines", "beginnings", "far_note"]

FAR_NS = 3_600 * 10**9
"""A source whose first row is due later than this after the start was recorded apart, perhaps."""


class Beginning(NamedTuple):
    """Beginning of a source's replay.

    Attributes:
        arrival_ns: arrival that is due at the start of the run.
        after_ns: time from there to the arrival of its first row; None if unknown.
        due_ns: the same by the clock, at its speed.
        is_given: whether `start=` says it.
    """

    arrival_ns: int
    after_ns: int | None = None
    due_ns: int | None = None
    is_given: bool = False


def beginnings(steps: Mapping[str, Step]) -> dict[str, Beginning]:
    """Return {source: beginning of its replay}; others begin with their own first arrival.

    Opens the inputs of sources that share a beginning, if there are several, and of those whose
    `start` is a time.

    Args:
        steps: {name: step} of the flow.
    """
    sources = sources_among(steps.values())
    made = {
        step.name: _given(step, start_ns)
        for step in sources
        if (start_ns := step.source.start_ns) is not None
    }
    shared = [step for step in sources if step.source.shares_beginning]
    if len(shared) < 2:
        return made
    first_ns = {
        step.name: arrival_ns
        for step in shared
        if (arrival_ns := _first_arrival_ns(step.name, step.source, step.schema)) is not None
    }
    at_ns = min(first_ns.values(), default=0)
    for step in shared:
        if step.name in first_ns:
            made[step.name] = _beginning(step, at_ns, first_ns[step.name])
    return made


def _given(step: SourceStep, start_ns: int) -> Beginning:
    """Return the beginning that `start=` says; opens no live input."""
    spec = step.source
    first_ns = _first_arrival_ns(step.name, spec, step.schema) if spec.is_history else None
    if first_ns is None:
        return Beginning(start_ns, is_given=True)
    return _beginning(step, start_ns, first_ns)._replace(is_given=True)


def _beginning(step: SourceStep, at_ns: int, first_ns: int) -> Beginning:
    after_ns = max(first_ns - at_ns, 0)
    return Beginning(at_ns, after_ns, round(after_ns / (step.source.speed or 1)))


def beginning_lines(known: Mapping[str, Beginning]) -> Iterator[str]:
    """Yield a line for each source of which it is known where its replay begins."""
    width = max(map(len, known), default=0)
    for name, beginning in known.items():
        time = np.datetime_as_string(np.datetime64(beginning.arrival_ns, "ns"), unit="auto")
        line = f"  {name:<{width}}  begins at {time}Z"
        if beginning.after_ns:
            line += f", its first row arrived {format_ns(beginning.after_ns)} later"
        yield line


def far_note(known: Mapping[str, Beginning]) -> str | None:
    """Return a note on sources that begin long after others; None if none do."""
    far = {name: beginning for name, beginning in known.items() if (beginning.due_ns or 0) > FAR_NS}
    if not far:
        return None
    waits = " and ".join(
        f"the first row of {name!r} is due {format_ns(beginning.due_ns or 0)} after "
        f"{'its start=' if beginning.is_given else 'the start'}"
        for name, beginning in far.items()
    )
    if all(beginning.is_given for beginning in far.values()):
        return f"{waits}; write a later start=, or start='own' to begin with its first row"
    return (
        f"replayed sources begin with the first arrival of all, so that {waits}; write "
        "start='own' at a source that was recorded apart"
    )


def _first_arrival_ns(source: str, spec: SourceSpec, schema: pa.Schema) -> int | None:
    """Return the arrival of a source's first row; None if none can be read.

    The run reads the same rows, and reports an error of theirs.

    Args:
        source: name of the source.
        spec: its settings; its input is history, and replayed.
        schema: inside schema of its input.
    """
    order = spec.reorder.begin()
    blocks = BlockReader(source, spec, schema, order=order, rank=0, needed=frozenset())
    try:
        return blocks.first_arrival_ns()
    except SlackwaterError:
        return None
    finally:
        blocks.close()
