"""A flow of keyed steps by a seed and a number; its replicas are chosen when it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

import slackwater as sw
from benchmarks.engine.random_flows.twin import one_of
from benchmarks.engine.replicated_flows.sources import draw_source, key_types
from benchmarks.engine.replicated_flows.steps import CHANGING, KEYED, Drawing, merged, stateless

MakeOutput = Callable[[str], "sw.connectors.Output"]


def _collected(name: str) -> sw.connectors.Output:
    del name
    return sw.collect_sink()


@dataclass
class Drawn:
    """A flow that was made.

    Attributes:
        written: number of steps with `replicas=` written.
        comparable: sinks whose rows are the same, in any order, without `replicas=`.
        unordered: sinks whose rows are the same, in any order, for any order of sources' rows.
        sinks: names of all its sinks.
        kinds: kinds of the keyed steps, in order.
    """

    flow: sw.Dataflow
    written: int = 0
    comparable: list[str] = field(default_factory=list)
    unordered: list[str] = field(default_factory=list)
    sinks: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ReplicatedFlow:
    """A flow by its numbers: the same steps for any replicas, batches and parts of sources."""

    seed: int
    number: int
    most_rows: int = 150

    def made(
        self,
        replicas: Sequence[int] | None,
        *,
        batch_rows: int = 65_536,
        parts: int = 1,
        output: MakeOutput = _collected,
    ) -> Drawn:
        """Return the flow.

        Args:
            replicas: of the steps that have them, in turn; None: written nowhere.
            batch_rows: most rows of a batch of a source.
            parts: number of sources that share the rows of each source.
            output: maker of the output of a sink, by its name.
        """
        rng = np.random.default_rng([self.seed, self.number])
        drawn = Drawn(sw.Dataflow(f"replicated-{self.seed}-{self.number}"))
        given: list[Drawing] = []
        first = key_types(rng)

        def add_source() -> None:
            types = first if rng.random() < 0.7 else key_types(rng)
            size = {"most_rows": self.most_rows, "batch_rows": batch_rows, "parts": parts}
            given.append(Drawing(draw_source(rng, drawn.flow, types, **size)))

        for _ in range(int(rng.integers(1, 3))):
            add_source()
        for _ in range(int(rng.integers(1, 4))):
            if rng.random() < 0.25:  # after steps: stages of sources are in any place of the plan
                add_source()
            made = self._keyed(rng, drawn, given, replicas)
            if made is not None:
                given.append(made)
                given += _after(rng, given)
        read = {name for step in drawn.flow.steps.values() for name in step.inputs}
        for one in given:
            if one.stream.name not in read or rng.random() < 0.1:
                _end(rng, drawn, one, output)
        return drawn

    @staticmethod
    def _keyed(
        rng: np.random.Generator,
        drawn: Drawn,
        given: list[Drawing],
        replicas: Sequence[int] | None,
    ) -> Drawing | None:
        """Return the rows of one more keyed step, of recent streams more often than of old ones."""
        usable = [one for one in given if not one.is_last]
        recent = usable if rng.random() < 0.3 else usable[-2:]
        left, right = one_of(rng, recent), one_of(rng, usable)
        if rng.random() < 0.3:
            left = stateless(rng, left)
        kind = one_of(rng, list(KEYED))
        if left.has_changes or right.has_changes:
            kind = one_of(rng, CHANGING)
        is_written = rng.random() < 0.85
        own = replicas[drawn.written % len(replicas)] if is_written and replicas else None
        made = KEYED[kind](rng, left, right, own)
        if made is None:
            given += [left] if left not in given else []  # else nothing reads it
            return None
        drawn.written += is_written
        drawn.kinds.append(kind + ("" if is_written else " (plain)"))
        return replace(made, has_written=made.has_written or is_written)


def _after(rng: np.random.Generator, given: list[Drawing]) -> list[Drawing]:
    """Return what follows the last stream: nothing, stateless steps, perhaps two, or a merge."""
    last = given[-1]
    chance = rng.random()
    if chance < 0.3:
        return [stateless(rng, last)]
    if chance < 0.45:
        return [stateless(rng, last), stateless(rng, last)]
    if chance < 0.6:
        filtered = stateless(rng, last)
        both = merged(last, [filtered, *given[:-1]])
        return [filtered] if both is None else [filtered, both]
    return []


def _end(rng: np.random.Generator, drawn: Drawn, one: Drawing, output: MakeOutput) -> None:
    name = f"out-{len(drawn.sinks) + 1}"
    stream = one.stream
    if rng.random() < 0.5 and "t" not in stream.columns:
        stream = stream.with_columns(t=sw.event_time())
    stream.sink(name, output(name))
    drawn.sinks.append(name)
    if not one.varies:
        drawn.comparable.append(name)
    if not one.by_order:
        drawn.unordered.append(name)
