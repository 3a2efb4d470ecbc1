"""Costs of the flows of `cores` on many slots: one of them is replayed alone.

```
simulation of n slots ─▶ log of the slot with most rows ─▶ replayed alone ─▶ least time a slice
                                                                                     │
costs of each of its steps  ◀──────── least squares over its slices ◀────────────────┘
```

So each slice is as long, and of as many messages, as it is among n slots; but the slot has the
caches of a core to itself. With uneven keys the slot with most rows is the limit. In a slot with
few rows, rows and comparisons differ by one factor, so either may get the cost of both: 59 ns a
comparison, where the hot replica has 30 times as many for each row, and takes a few.

What sending and receiving cost is measured between a sender and a receiver in one process; what
writing costs, by a job on Ray.

| a step is charged for each | |
| --- | --- |
| slice; slice that hands rows on | its fixed part, without rows and with them |
| message | from another slot, since its slot's last slice: queued, then put into a gate |
| row | that it hands on, or its gate releases |
| piece | run of a writer's rows that a gate merges: one of each, as far as there are rows |
| part, promise | a message that it makes: with rows, and without |
| comparison | of a join |
"""

from __future__ import annotations

import gc
import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zmq

import slackwater as sw
from benchmarks.engine.cores_work import Work
from benchmarks.frame import check, hardware
from benchmarks.jobs import finished
from slackwater.actors.slot.peers import codec_of
from slackwater.actors.wire.channel import ChannelKeys, Receiver, Sender
from slackwater.runtime.model import Message, Progress, batch_of
from slackwater.runtime.plan.plan import Channel, Plan
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import Send, Slice, make_slot
from slackwater.runtime.schedule.stimulus_log import give, replaying
from slackwater.runtime.simulate import Simulation
from slackwater.runtime.simulate.models import MeasuredCost

__all__ = [
    "Cost",
    "Costs",
    "SliceCosts",
    "Wire",
    "counted",
    "fitted",
    "measured_costs",
    "read_costs",
    "save_costs",
    "step_costs",
]

KEPT = Path(__file__).with_name("cores_costs.json")
"""Costs of the last full run."""
REPLAYS = 5
MOST_STIMULI = 10_000_000
BURSTS, FRAMES, FRAME_ROWS = 20, 20, (10, 2_000)
"""Frames of a burst are there before the first is read: a busy slot reads several at once."""
ARRIVES_S, MOST_S = 0.01, 30.0

Floats = npt.NDArray[np.float64]


class SliceCosts(NamedTuple):
    """Costs of a step, or counts of what a slice is charged for: see above."""

    slices: float = 0.0
    handing: float = 0.0
    messages: float = 0.0
    rows: float = 0.0
    pieces: float = 0.0
    parts: float = 0.0
    promises: float = 0.0
    comparisons: float = 0.0

    def of(self, counts: SliceCosts) -> float:
        """Return the cost of a slice, ns."""
        return sum(cost * count for cost, count in zip(self, counts, strict=True))


def counted(done: Slice, messages: int, writers: int) -> SliceCosts:
    """Return the counts of a slice.

    Args:
        done: slice that a slot has done.
        messages: number of messages that came to its slot since the last slice there.
        writers: number of channels that come to its stage.
    """
    sent = [action.message for action in done.actions if isinstance(action, Send)]
    parts = sum(message.batch is not None for message in sent)
    rows = done.released
    return SliceCosts(
        slices=1,
        handing=rows > 0,
        messages=messages,
        rows=rows,
        pieces=min(rows, writers),
        parts=parts,
        promises=len(sent) - parts,
        comparisons=done.comparisons,
    )


@dataclass(frozen=True)
class Cost:
    """Cost of a frame, and of each row in it."""

    per_frame_ns: float
    per_row_ns: float


@dataclass(frozen=True)
class Wire:
    """Cost of a frame at both ends of a channel."""

    sent: Cost
    received: Cost


@dataclass(frozen=True)
class Costs:
    """Costs of a flow.

    Attributes:
        steps: {number of slots: {step: its costs}}.
        written_ns: cost of a row that is written.
        wire: of a channel from a source to a replica.
    """

    steps: Mapping[int, Mapping[str, SliceCosts]]
    written_ns: float
    wire: Wire


def measured_costs(cluster: sw.Cluster, work: Work, slots: Sequence[int]) -> Costs:
    """Return the costs of a flow on each number of slots."""
    assert work.spread is not None, "it is one of the joins"
    with tempfile.TemporaryDirectory() as folder:
        flow = work.spread(1, Path(folder) / "results")
        report = finished(cluster.submit(flow, placement={"*": "node-1/1"}))
    (sink,) = [stage for stage in report.stages if stage.kind == "sink"]
    steps = {number: step_costs(work, number) for number in slots}
    plan = cluster.plan(work.build(2))
    channel = next(c for c in plan.channels if c.owned is not None)
    return Costs(steps, sink.service_ns / max(sink.rows_in, 1), measured_wire(channel))


def save_costs(costs: Mapping[str, Costs], *, is_kept: bool) -> Path:
    """Write costs to a file, of the repository if they are kept; return its path."""
    path = KEPT if is_kept else Path(tempfile.gettempdir()) / KEPT.name
    works = {}
    for work, of_work in costs.items():
        works[work] = {
            "written_ns": of_work.written_ns,
            "wire": asdict(of_work.wire),
            "steps": {
                number: {step: own._asdict() for step, own in steps.items()}
                for number, steps in of_work.steps.items()
            },
        }
    plain = {"machine": hardware(), "works": works}
    path.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return path


def read_costs(path: Path) -> dict[str, Costs]:
    """Return {work: its costs} of a file that `save_costs` wrote."""
    works = json.loads(path.read_text(encoding="utf-8"))["works"]
    return {
        work: Costs(
            {
                int(number): {step: SliceCosts(**own) for step, own in steps.items()}
                for number, steps in plain["steps"].items()
            },
            plain["written_ns"],
            Wire(Cost(**plain["wire"]["sent"]), Cost(**plain["wire"]["received"])),
        )
        for work, plain in works.items()
    }


# -- one slot of many, alone -----------------------------------------------------------------------


def step_costs(work: Work, slots: int) -> dict[str, SliceCosts]:
    """Return the costs of each step of a flow, by the slot with most rows."""
    assert work.spread is not None, "it is one of the joins"
    flow = work.spread(slots, Path("not written"))
    host = sw.Simulation(nodes=1, cores=slots)
    plan = host.plan(flow, limits=sw.Limits(log=MOST_STIMULI))
    run = Simulation(plan, egress=lambda *_: None, cost=MeasuredCost(time.thread_time_ns))
    report = run.run()
    check(report.ledger.is_balanced, f"{work.name}, {slots} slots: the ledger does not balance")
    came = Counter[str]()
    for stage in report.stages:
        came[plan.slots[stage.name]] += stage.rows_in
    name = max(came, key=lambda slot: came[slot])
    log = run.logs()[name]
    del run
    turns = [_replayed(plan, name, log) for _ in range(REPLAYS)]
    rows: dict[str, list[tuple[SliceCosts, float]]] = {}
    subjects = {stage.name: stage.subject.step for stage in plan.stages}
    for times in zip(*turns, strict=True):
        stage, counts, _ = times[0]
        rows.setdefault(subjects[stage], []).append((counts, min(took for *_, took in times)))
    return {step: fitted(own) for step, own in rows.items()}


def _replayed(plan: Plan, name: str, log: Mapping[str, Any]) -> list[tuple[str, SliceCosts, float]]:
    """Replay a slot; return the stage, the counts and the time of each of its slices."""
    own = slot_plan(plan, name)
    limits = sw.Limits()  # no log of the replay
    stages = tuple(replaying(own.stages, log))
    slot = make_slot(type(own)(name=name, node=own.node, stages=stages, limits=limits), start_ns=0)
    writers = {stage.name: len(stage.inputs) for stage in stages}
    slices: list[tuple[str, SliceCosts, float]] = []
    messages, spent_ns = 0, 0
    gc.collect()
    gc.disable()  # a slot of its own has few objects, here are those of all
    try:
        for stimulus in log["stimuli"]:
            began_ns = time.thread_time_ns()
            came = give(slot, stimulus)
            took_ns = time.thread_time_ns() - began_ns
            if stimulus[0] == "deliver":
                messages += 1
            if stimulus[0] != "step" or came is None:
                continue
            if came.has_read:  # the next slice takes the rows
                spent_ns += took_ns
                continue
            counts = counted(came, messages, writers[came.stage])
            slices.append((came.stage, counts, float(took_ns + spent_ns)))
            messages = spent_ns = 0
    finally:
        gc.enable()
    return slices


def fitted(slices: Sequence[tuple[SliceCosts, float]]) -> SliceCosts:
    """Return the costs, none below 0, whose sums over slices are their times."""
    counts = np.array([own for own, _ in slices], dtype=float)
    times = np.array([took for _, took in slices])
    # Times scatter in proportion to their length, as of a few slow ones among many fast ones.
    weights = 1 / np.sqrt(np.maximum(times, 1.0))
    costs = np.zeros(counts.shape[1])
    used = [n for n in range(len(costs)) if counts[:, n].any()]
    while used:
        found, *_ = np.linalg.lstsq(counts[:, used] * weights[:, None], times * weights, rcond=None)
        if (found >= 0).all():
            costs[used] = found
            break
        used.pop(int(found.argmin()))
    scale = times.sum() / max(float((counts @ costs).sum()), 1.0)  # what is left over, evenly
    return SliceCosts(*(costs * scale).tolist())


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
