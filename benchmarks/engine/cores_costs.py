"""Costs of the flows of `cores`, measured on Ray in one slot, and those of a channel's two ends.

In one slot nothing else of the job competes for the core, and nothing is sent. What sending and
receiving cost is measured between a sender and a receiver in one process.

| cost | from |
| --- | --- |
| slice and row of a source, of the whole step | two runs whose slices differ in length |
| slice of a replica | two runs with 2 and 16 replicas: only slices differ |
| a part more of a divided slice | the same two runs, at the source |
| message to the gate of an ordered sink | the same two runs: one from each slice of a replica |
| comparison | a run that compares, less its slices and rows |
| frame and row, sent and received | frames of few rows and of many |
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zmq

import slackwater as sw
from benchmarks.engine.cores_work import Work
from benchmarks.frame import hardware
from benchmarks.jobs import finished
from slackwater.actors.slot.peers import codec_of
from slackwater.actors.wire.channel import ChannelKeys, Receiver, Sender
from slackwater.runtime.model import Message, Progress, batch_of
from slackwater.runtime.plan.plan import Channel

__all__ = ["Cost", "Costs", "Wire", "measured_costs", "read_costs", "save_costs"]

KEPT = Path(__file__).with_name("cores_costs.json")
"""Costs of the last full run."""
FEW, MANY = 2, 16  # replicas, to see what each of them more costs
LONG, SHORT = 10_000, 500  # rows of a slice at most
ONE_SLOT = {"*": "node-1/1"}
BURSTS, FRAMES, FRAME_ROWS = 20, 20, (10, 2_000)
"""Frames of a burst are there before the first is read: a busy slot reads several at once."""
ARRIVES_S, MOST_S = 0.01, 30.0


@dataclass(frozen=True)
class Cost:
    """Cost of a stage's work: each slice, and each row in it."""

    per_slice_ns: float
    per_row_ns: float


@dataclass(frozen=True)
class Wire:
    """Cost of a frame at both ends of a channel, and of each row in it."""

    sent: Cost
    received: Cost


@dataclass(frozen=True)
class Costs:
    """Costs of a flow.

    Attributes:
        alone: {stage: its cost}, where `replicas=` is not written.
        divided: {stage or step: its cost}, with two replicas; the step's is that of each replica.
        per_part_ns: {source: cost of each further part of a slice that it divides}.
        merged_ns: cost of a message to the gate of the ordered sink.
        comparison_ns: of a join, alone and divided; 0 for an aggregate.
        wire: of a channel from a source to a replica.
    """

    alone: Mapping[str, Cost]
    divided: Mapping[str, Cost]
    per_part_ns: Mapping[str, float]
    merged_ns: float
    comparison_ns: tuple[float, float]
    wire: Wire


@dataclass(frozen=True)
class Tally:
    """Slices, rows, comparisons and busy time of some stages of a run."""

    slices: int = 0
    rows: int = 0
    compared: int = 0
    took_ns: int = 0

    @classmethod
    def of(cls, report: sw.JobReport, names: Sequence[str]) -> Tally:
        """Return the sums over the stages of these names."""
        own = [stage for stage in report.stages if stage.name in names]
        return cls(
            sum(stage.batches for stage in own),
            sum(stage.rows_in for stage in own),
            sum(stage.comparisons for stage in own),
            sum(stage.service_ns for stage in own),
        )


def measured_costs(cluster: sw.Cluster, work: Work) -> Costs:
    """Return the costs of a flow, from runs in one slot."""
    whole = finished(cluster.submit(work.build(None), placement=ONE_SLOT))
    parts = finished(cluster.submit(work.build(FEW), placement=ONE_SLOT))
    alone, short, few, few_short, many = (
        _light(cluster, work, replicas, rows=rows)
        for replicas, rows in (
            (None, LONG),
            (None, SHORT),
            (FEW, LONG),
            (FEW, SHORT),
            (MANY, LONG),
        )
    )
    sources = [stage.name for stage in alone.stages if stage.kind == "source"]
    of_alone = {name: _cost(alone, short, [name], [name]) for name in (*sources, work.operator)}
    of_divided = {name: _cost(few, few_short, [name], [name]) for name in sources}
    of_divided[work.operator] = _cost(few, many, _replicas(few, work), _replicas(many, work))
    # A light join has few results, so the rows of its sink are those of the whole flow.
    merged_ns = _merged_ns(few, many, work)
    messages = Tally.of(parts, _replicas(parts, work)).slices
    of_alone["out"] = _by_rows(whole, "out", rest_ns=0.0)
    of_divided["out"] = _by_rows(parts, "out", rest_ns=messages * merged_ns)
    per_part_ns = {}
    for name in sources:
        two, more = Tally.of(few, [name]), Tally.of(many, [name])
        further = (MANY - FEW) * max(more.slices, 1)
        per_part_ns[name] = max(0.0, (more.took_ns - two.took_ns) / further)
    plan = cluster.plan(work.build(FEW))
    channel = next(c for c in plan.channels if c.owned is not None)
    return Costs(
        of_alone,
        of_divided,
        per_part_ns,
        merged_ns,
        (
            _comparison_ns(whole, [work.operator], of_alone[work.operator]),
            _comparison_ns(parts, _replicas(parts, work), of_divided[work.operator]),
        ),
        measured_wire(channel),
    )


def save_costs(costs: Mapping[str, Costs], *, is_kept: bool) -> Path:
    """Write costs to a file, of the repository if they are kept; return its path."""
    path = KEPT if is_kept else Path(tempfile.gettempdir()) / KEPT.name
    plain: dict[str, Any] = {"machine": hardware()}
    plain["works"] = {work: asdict(one) for work, one in costs.items()}
    path.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return path


def read_costs(path: Path) -> dict[str, Costs]:
    """Return {work: its costs} of a file that `save_costs` wrote."""

    def cost(plain: Mapping[str, float]) -> Cost:
        return Cost(plain["per_slice_ns"], plain["per_row_ns"])

    works = json.loads(path.read_text(encoding="utf-8"))["works"]
    return {
        work: Costs(
            {name: cost(own) for name, own in plain["alone"].items()},
            {name: cost(own) for name, own in plain["divided"].items()},
            plain["per_part_ns"],
            plain["merged_ns"],
            tuple(plain["comparison_ns"]),
            Wire(cost(plain["wire"]["sent"]), cost(plain["wire"]["received"])),
        )
        for work, plain in works.items()
    }


def _replicas(report: sw.JobReport, work: Work) -> list[str]:
    return [s.name for s in report.stages if s.name.startswith(f"{work.operator}.")]


def _light(cluster: sw.Cluster, work: Work, replicas: int | None, *, rows: int) -> sw.JobReport:
    limits = sw.Limits(max_slice_rows=rows, min_slice_rows=min(rows, 1_000))
    return finished(cluster.submit(work.light(replicas), placement=ONE_SLOT, limits=limits))


def _cost(
    long: sw.JobReport, short: sw.JobReport, names: Sequence[str], more_names: Sequence[str]
) -> Cost:
    """Return the cost of slices and rows, from two runs of which one has more slices.

    Where it has hardly more, all is put down to the rows.
    """
    few, many = Tally.of(long, names), Tally.of(short, more_names)
    per_slice_ns = 0.0
    if many.slices > 1.5 * few.slices:
        per_slice_ns = max(0.0, (many.took_ns - few.took_ns) / (many.slices - few.slices))
        per_slice_ns = min(per_slice_ns, few.took_ns / max(few.slices, 1))
    return Cost(per_slice_ns, (few.took_ns - few.slices * per_slice_ns) / max(few.rows, 1))


def _by_rows(report: sw.JobReport, name: str, *, rest_ns: float) -> Cost:
    """Return the cost of a stage's rows, beside the rest of its time."""
    tally = Tally.of(report, [name])
    return Cost(0.0, max(0.0, tally.took_ns - rest_ns) / max(tally.rows, 1))


def _merged_ns(few: sw.JobReport, many: sw.JobReport, work: Work) -> float:
    """Return the cost of a message to the sink's gate: each slice of a replica sends one."""
    less, more = (Tally.of(each, ["out"]).took_ns for each in (few, many))
    messages = (Tally.of(each, _replicas(each, work)).slices for each in (many, few))
    return max(0.0, (more - less) / max(next(messages) - next(messages), 1))


def _comparison_ns(report: sw.JobReport, names: Sequence[str], cost: Cost) -> float:
    tally = Tally.of(report, names)
    rest_ns = tally.slices * cost.per_slice_ns + tally.rows * cost.per_row_ns
    return max(0.0, (tally.took_ns - rest_ns) / tally.compared) if tally.compared else 0.0


# -- the wire --------------------------------------------------------------------------------------


def measured_wire(channel: Channel) -> Wire:
    """Return what frames of a channel cost its sender and its receiver, over a Unix socket."""
    short, long = (_ends_ns(channel, rows) for rows in FRAME_ROWS)
    few, many = FRAME_ROWS
    costs = []
    for less_ns, more_ns in zip(short, long, strict=True):
        per_row_ns = max(0.0, (more_ns - less_ns) / (many - few))
        costs.append(Cost(max(0.0, less_ns - few * per_row_ns), per_row_ns))
    return Wire(*costs)


def _ends_ns(channel: Channel, rows: int) -> tuple[float, float]:
    """Return the time that a frame of so many rows takes its sender and its receiver, ns."""
    keys, context = ChannelKeys.generate(), zmq.Context()
    receiver = Receiver(keys=keys, codec=codec_of(channel), context=context, is_local=True)
    sender = Sender(receiver.endpoint, keys=keys, codec=codec_of(channel), context=context)
    with closing(receiver), closing(sender):
        _received_ns(receiver, frames=0)
        sender.poll()
        sent_ns = received_ns = 0
        for burst in range(BURSTS):
            messages = [
                _message(channel, rows, (burst * FRAMES + frame) * rows) for frame in range(FRAMES)
            ]
            began_ns = time.thread_time_ns()
            for message in messages:
                sender.send(message, 0)
            sent_ns += time.thread_time_ns() - began_ns
            received_ns += _received_ns(receiver, frames=FRAMES)
    return sent_ns / (BURSTS * FRAMES), received_ns / (BURSTS * FRAMES)


def _received_ns(receiver: Receiver, *, frames: int) -> int:
    """Wait for frames; return the time that reading them took, ns."""
    due_s = time.monotonic() + MOST_S
    came = took_ns = 0
    while came < frames or not frames:
        time.sleep(ARRIVES_S)
        began_ns = time.thread_time_ns()
        got = len(receiver.receive(0))
        took_ns += (time.thread_time_ns() - began_ns) if got else 0
        came += got
        if not frames:
            return 0
        if time.monotonic() > due_s:
            raise TimeoutError(f"{frames - came} frames did not arrive")
    return took_ns


def _message(channel: Channel, rows: int, first: int) -> Message:
    times = np.arange(first, first + rows)
    columns = {f.name: times.astype(f.type.to_pandas_dtype()) for f in channel.schema}
    batch = batch_of(times, columns)
    return Message(batch, Progress.after(batch, first + rows - 1))
