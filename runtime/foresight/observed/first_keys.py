"""First keys of a flow: its sources' first rows, counted by key group.

```
buses ▸ filter ─▶ │ join.1, join.2     each source is opened here, and its first rows go through the
loops ──────────▶ │                    steps row by row; then their keys are counted by group
```

No stage runs, and no user's function. It says how many groups each replica owns
(`runtime/placement/key_shares.py`) where no sample of the flow does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import Batch
from slackwater.runtime.model.hashes import KEY_GROUPS, rows_by_group
from slackwater.runtime.plan.plan import Channel, Plan, Stage
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.schedule.chain import Chain
from slackwater.runtime.sources.blocks import BlockReader
from slackwater.runtime.sources.input_part import InputPart
from slackwater.runtime.sources.partition_set import partitions_of
from slackwater.runtime.sources.spec import Input, SourceSpec

__all__ = ["first_key_rows"]

ROWS = 16_384
"""First rows that are read of each source, about: some of each of 128 groups, and many of few."""
PLACES = 4
"""Most partitions of which first rows are read: evenly over all, as one may have few keys."""


def first_key_rows(plan: Plan) -> dict[str, FloatArray]:
    """Return {step: shape (KEY_GROUPS,), its first rows in each group of keys}.

    Steps whose keys have one owner are omitted, and so are those whose rows cannot be had here at
    once: rows of a tuned flow, of a live source or of Spark, results of other steps, and what a
    user's function makes. Those of an input that cannot be read are omitted, too: the run names
    its error.

    Args:
        plan: plan of the flow; its sources are opened again.
    """
    if any(stage.is_tuned for stage in plan.stages):
        return {}
    by_name = {stage.name: stage for stage in plan.stages}
    reads: dict[str, _FirstRows] = {}
    rows: dict[str, FloatArray] = {}
    for stage in plan.stages:
        if stage.replica is None or stage.replica.index or not _divides(stage):
            continue
        channels = [c for c in stage.inputs if c.feeder.part in (None, 1)]  # of equal parts one
        ways = [_way(channel, by_name) for channel in channels]
        known = [way for way in ways if way is not None]
        if len(known) == len(ways):
            with suppress(Exception):  # whatever is raised here, the run meets, and names
                rows[stage.whole] = _key_rows(known, reads)
    return rows


def _divides(stage: Stage) -> bool:
    """Whether the keys of a replica's step have several owners."""
    owned = next((channel.owned for channel in stage.inputs if channel.owned), None)
    return owned is not None and sum(count > 0 for count in owned.groups) > 1


@dataclass(frozen=True)
class _FirstRows:
    """First rows of a source.

    Attributes:
        batches: the rows.
        span_ns: event time from the oldest to the newest.
        is_all: whether the source has no more.
    """

    batches: Sequence[Batch]
    span_ns: int
    is_all: bool


@dataclass(frozen=True)
class _Way:
    """Way of rows from a source to a step that owns keys.

    Attributes:
        source: the source's first stage.
        spec: settings of the source.
        steps: steps row by row on the way.
        keys: key columns of the rows that arrive.
    """

    source: Stage
    spec: SourceSpec
    steps: Sequence[Step]
    keys: Sequence[str]


def _way(channel: Channel, by_name: Mapping[str, Stage]) -> _Way | None:
    """Return the way of a channel's rows; None if it cannot be gone here."""
    stage, steps = by_name[channel.source], list[Step]()
    while isinstance(stage.step, EachRowStep):
        steps = [stage.step, *stage.chain, *steps]
        stage = by_name[stage.inputs[0].source]
    steps = [*stage.chain, *steps]
    if channel.owned is None or not isinstance(stage.step, SourceStep):
        return None
    traits = stage.step.source.traits
    is_here = traits.is_history and traits.reads_inline and not traits.ends_with_driver
    if not is_here or any(step.traits.runs_users_code for step in (stage.step, *steps)):
        return None
    return _Way(stage, stage.step.source, steps, channel.owned.columns)


def _key_rows(ways: Sequence[_Way], reads: dict[str, _FirstRows]) -> FloatArray:
    """Return a step's rows in each group of keys, in one time of all sources.

    Args:
        ways: ways to the step, one for each source and port.
        reads: first rows that are known, by source; others are added.
    """
    for way in ways:
        if way.source.name not in reads:
            reads[way.source.name] = _first_rows(way.source, way.spec)
    own = [reads[way.source.name] for way in ways]
    longest_ns = max(read.span_ns for read in own)
    spans_ns = [longest_ns if read.is_all else read.span_ns for read in own]
    shortest_ns = min(spans_ns)  # the source with most rows a second has all its rows then
    rows = np.zeros(KEY_GROUPS)
    for way, read, span_ns in zip(ways, own, spans_ns, strict=True):
        scale = shortest_ns / span_ns if shortest_ns else 1.0
        chain = Chain(way.steps)
        for batch in read.batches:
            arrived = chain.apply(batch)
            if arrived.rows:
                keys = [arrived.batch.columns[name] for name in way.keys]
                rows += scale * rows_by_group(keys, arrived.rows)
    return rows


def _first_rows(stage: Stage, spec: SourceSpec) -> _FirstRows:
    """Read the first rows of a source.

    Raises:
        SlackwaterError: the input cannot be read, or a row not be used.
    """
    inputs, is_all = _places(stage.subject.step, spec)
    batches: list[Batch] = []
    span_ns = 0
    for given in inputs:
        read = _read_some(stage, replace(spec, input=given), ROWS // len(inputs))
        batches += read.batches
        span_ns, is_all = span_ns + read.span_ns, is_all and read.is_all
    return _FirstRows(batches, span_ns, is_all)


def _places(source: str, spec: SourceSpec) -> tuple[list[Input], bool]:
    """Return an input, or some of its partitions; and whether these are all."""
    given = spec.input
    whole = given.inner if isinstance(given, InputPart) else given
    if not spec.traits.has_partitions:
        return [whole], True
    names = tuple(sorted(partition.name for partition in partitions_of(source, whole)))
    places = range(0, len(names), -(-len(names) // PLACES))
    inputs: list[Input] = [
        InputPart(whole, index=place, of=len(names), known=names) for place in places
    ]
    return inputs, len(inputs) == len(names)


def _read_some(stage: Stage, spec: SourceSpec, most: int) -> _FirstRows:
    """Read the first rows of an input, at least so many if it has them."""
    order = spec.reorder.begin()
    blocks = BlockReader(
        stage.subject.step, spec, stage.step.schema, order=order, rank=0, needed=stage.needed
    )
    batches: list[Batch] = []
    try:
        for rows in blocks.first_rows(most):
            times_ns = rows.event_time_ns
            batches.append(
                Batch(event_time_ns=times_ns, stimulus_time_ns=times_ns, columns=rows.columns)
            )
            if sum(map(len, batches)) >= most:
                break
        is_all = blocks.has_ended
    finally:
        blocks.close()
    times = [batch.event_time_ns for batch in batches]
    span_ns = int(np.ptp(np.concatenate(times))) if times else 0
    return _FirstRows(batches, span_ns, is_all)
