"""What it costs that a channel behind a gate is one FIFO, whose rows are in event-time order.

A prompt source and one that lags meet in a merge on the first slot. The second slot has its
results, and a rival source of its own that comes in bursts, which it can only just work off. Rows
of the lagging source are the newer ones by stimulus and stand between the older ones of the prompt
source. The same flow runs with four queues:

```
first row      a message counts by its first row, a channel by its first message
earliest row   a message counts by its earliest row
lent           so does a channel: by the earliest row of all that waits on it (ours)
row by row     no FIFO at all: the earliest row of all goes first. Only where no order is needed
```
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, check
from slackwater.runtime.measure import imbalances
from slackwater.runtime.model import END_NS, Batch, Message
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.schedule import Send, Slot
from slackwater.runtime.schedule.pass_node import PassNode
from slackwater.runtime.schedule.queues import Path, PathQueues, stimulus_ns
from slackwater.runtime.simulate import CostModel, Simulation

MS = 1_000_000
SECONDS, QUICK_SECONDS, SEEDS, QUICK_SEEDS = 40, 30, 5, 2
ROW_NS = 5 * MS
"""What a result costs at the second slot: it works off two hundred a second."""
SLICE_ROWS = 4
LAGGING_RATE = 60
"""Rows of the lagging source, a second: those that stand in front, and are newer."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """How far a source lags: `lag_s` on average, and by up to `jitter_s` more or less."""

    name: str
    lag_s: float
    jitter_s: float


CASES = (
    Case("lags 1 s", 1.0, 0.0),
    Case("lags 0.5 to 1.5 s", 1.0, 0.5),
    Case("lags 0 to 4 s", 2.0, 2.0),
)


class FirstRowPath(Path):
    """A FIFO as it was: the first row of the first message says how urgent it is."""

    @property
    def earliest_ns(self) -> int:
        """The stimulus of the first row that waits."""
        message = self.messages[0][1]
        if message.batch is None or not message.rows:
            return message.progress.stimulus_ns
        return message.batch.stimulus_time_ns.item(0)


class EarliestRowPath(Path):
    """One whose first message says how urgent it is, by its earliest row."""

    @property
    def earliest_ns(self) -> int:
        """The earliest stimulus of the first message."""
        return self.messages[0][0]


class RowPath(Path):
    """No FIFO: a row at a time, the earliest stimulus first; the end of the stream comes last."""

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, int, Message, int]] = []
        self._count = 0

    def push(self, message: Message, now_ns: int) -> None:
        """Queue each of a message's rows."""
        parts = [message]
        if message.batch is not None and message.rows:
            told = message.progress
            so_far = told.reaching(min(told.promise_ns, END_NS - 1), told.stimulus_ns)
            parts = [Message(message.batch.slice(n, n + 1), so_far) for n in range(message.rows)]
            if told.is_end:
                parts.append(Message(None, told))
        for part in parts:
            self._count += 1
            at_ns = END_NS if part.progress.is_end else stimulus_ns(part)
            heapq.heappush(self._heap, (at_ns, self._count, part, now_ns))
        self._show()

    def pop(self, max_rows: int | None = None) -> tuple[Message, int]:
        """Take the earliest row."""
        del max_rows
        _, _, message, since_ns = heapq.heappop(self._heap)
        self._show()
        return message, since_ns

    def _show(self) -> None:
        self.messages.clear()
        self.messages.extend((at, message, came) for at, _, message, came in self._heap[:1])

    @property
    def earliest_ns(self) -> int:
        """The earliest stimulus that waits."""
        return self._heap[0][0]


KINDS: dict[str, type[Path]] = {
    "first row": FirstRowPath,
    "earliest row": EarliestRowPath,
    "lent": Path,
    "row by row": RowPath,
}


class Queued(PathQueues):
    """Queues of such paths."""

    kind: ClassVar[type[Path]]

    def __init__(self, channels: Sequence[str], kind: type[Path]) -> None:
        super().__init__(channels)
        self._paths = {channel: kind() for channel in channels}

    def push(self, channel: str, message: Message, now_ns: int) -> None:
        """Queue a message, which may be several from now on."""
        super().push(channel, message, now_ns)
        self._count()

    def pop(self, now_ns: int, max_rows: int | None = None) -> tuple[str, Message, int] | None:
        """Take the message that goes next, whole."""
        del max_rows
        item = super().pop(now_ns)
        self._count()
        return item

    def _count(self) -> None:
        self._messages = sum(len(path.messages) for path in self._paths.values())


class Run(Simulation):
    """A run whose second slot has such queues; keeps the results and how far they step back."""

    def __init__(self, plan: Plan, kind: type[Path], **options: Any) -> None:
        self._kind = kind
        self.left: dict[str, list[tuple[npt.NDArray[np.int64], int]]] = {}
        self.sent: list[npt.NDArray[np.int64]] = []
        super().__init__(plan, egress=self._leave, **options)

    def _leave(self, sink: str, batch: Batch | None, is_end: bool) -> None:
        del is_end
        if batch is not None:
            self.left.setdefault(sink, []).append((batch.stimulus_time_ns, self.now_ns))

    def _new_slot(self, name: str) -> Slot:
        slot = super()._new_slot(name)
        for machine in slot.stages.values():
            if machine.stage.kind == "sink":
                names = [channel.name for channel in machine.stage.inputs]
                assert isinstance(machine.node, PassNode), "it is a sink"
                queues = Queued(names, self._kind)
                machine.queues = machine.node._queues = queues
        return slot

    def _perform(self, action: Any) -> None:
        if isinstance(action, Send) and action.channel.target == "merged":
            batch = action.message.batch
            if batch is not None:
                self.sent.append(batch.stimulus_time_ns)
        super()._perform(action)

    def latency_s(self, sink: str) -> Floats:
        """Return the latency of each result of a sink, s."""
        return np.concatenate([(at - stimuli) / 1e9 for stimuli, at in self.left[sink]])

    def step_back_s(self) -> float:
        """Return how far at most a stimulus lies behind one that was sent before it, s."""
        stimuli = np.concatenate(self.sent)
        return float((np.maximum.accumulate(stimuli) - stimuli).max()) / 1e9


def build(case: Case, seconds: int, seed: int) -> sw.Dataflow:
    """Return the flow: 20 prompt rows a second and 60 that lag; a rival of 100 on average."""
    rng = np.random.default_rng(seed)
    flow = sw.Dataflow("stimulus-order")
    at_s = np.arange(0, seconds, 1 / LAGGING_RATE)
    lag_s = case.lag_s + case.jitter_s * np.sin(at_s / 3 + rng.uniform(0, 6))
    arrival_s = np.maximum.accumulate(at_s + lag_s)
    prompt_s = np.arange(0.005, seconds, 1 / 20)
    prompt = _source(flow, "prompt", prompt_s, prompt_s)
    lagging = _source(flow, "lagging", at_s, arrival_s)
    flow.merge(prompt, lagging, name="both").sink("merged", sw.collect_sink())
    rates = np.repeat(rng.permutation([20, 180] * (seconds // 8 + 1)), 4)[:seconds]
    rival_s = np.concatenate([second + np.arange(n) / n for second, n in enumerate(rates)])
    _source(flow, "rival", rival_s, rival_s).sink("alone", sw.collect_sink())
    return flow


def _source(flow: sw.Dataflow, name: str, at_s: Floats, arrival_s: Floats) -> sw.Stream:
    columns = {"ts": at_s, "arrival": arrival_s}
    rows = {key: (value * 1e9).astype("datetime64[ns]") for key, value in columns.items()}
    numbered = pa.table({**rows, "n": np.arange(len(at_s))})
    stream = flow.source(name, sw.table(numbered), event_time="ts", arrival="arrival", speed=1.0)
    return stream.select("ts", "n")


def one(case: Case, kind: type[Path], seconds: int, seed: int) -> Run:
    """Run a case with one kind of queue."""
    limits = sw.Limits(max_slice_rows=SLICE_ROWS, min_slice_rows=1)
    where = {"*": "node-1", "merged": "node-2", "alone": "node-2"}
    plan = sw.Simulation(2).plan(build(case, seconds, seed), placement=where, limits=limits)
    cost = CostModel(per_slice_ns=0, per_row_ns=1_000, stages={"merged": ROW_NS, "alone": ROW_NS})
    found = Run(replace(plan), kind, seed=seed, cost=cost)
    check(imbalances(found.run()) == [], "the ledger does not balance")
    return found


def run(options: Options) -> Result:
    """Run all cases with all kinds of queues."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    seeds = range(options.seed, options.seed + (QUICK_SEEDS if options.quick else SEEDS))
    result = Result(
        f"{seconds} s of virtual time, {len(seeds)} seeds, simulated; worst of all seeds, s",
        ["case", "queue", "worst", "p99", "worst above row by row", "step back"],
    )
    for case in CASES:
        found = {name: [one(case, kind, seconds, s) for s in seeds] for name, kind in KINDS.items()}
        _tell(result, case, found)
    return result


def _tell(result: Result, case: Case, found: dict[str, list[Run]]) -> None:
    def each(of: Callable[[Floats], float], runs: list[Run]) -> Floats:
        both = [np.concatenate([r.latency_s("merged"), r.latency_s("alone")]) for r in runs]
        return np.array([of(latency) for latency in both])

    back_s = max(r.step_back_s() for r in found["lent"])
    exact = each(np.max, found["row by row"])
    above: dict[str, float] = {}
    for name, runs in found.items():
        worst = each(np.max, runs)
        above[name] = float((worst - exact).max())
        figures = {
            "worst_s": float(worst.max()),
            "p99_s": float(each(lambda latency: float(np.quantile(latency, 0.99)), runs).max()),
            "above_s": above[name],
            "step_back_s": back_s,
        }
        result.rows.append([case.name, name, *figures.values()])
        result.figures[f"{case.name}, {name}"] = figures
    slice_s, in_front_s = SLICE_ROWS * ROW_NS / 1e9, LAGGING_RATE * back_s * ROW_NS / 1e9
    result.claims += [
        Claim(
            f"{case.name}: lent, above row by row and what stands in front of a row, s",
            above["lent"] - in_front_s,
            "<=",
            2 * slice_s,
        ),
        Claim(
            f"{case.name}: lent, above row by row, of what first row is",
            above["lent"] / above["first row"],
            "<=",
            0.6,
        ),
    ]
