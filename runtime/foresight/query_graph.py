"""The query graph as an estimator sees it: what an event costs each operator, and what comes of it.

Independent of nodes and placement: costs are seconds on a core of speed 1. Source: [mace] Def. 1,
§III-B, §VI-B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from slackwater.runtime.errors import SettingError

FloatArray = npt.NDArray[np.float64]


def arrivals_of(source: str) -> str:
    """Return what a query graph calls the events that reach a source's stage from outside."""
    return f"arrivals of {source}"


class CostCurve(Protocol):
    """What an operator makes of its input, subinterval by subinterval, where that is no line."""

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work on so many events.

        Args:
            arrivals: shape (inputs, d), events of each input in each subinterval.
            width_s: length of a subinterval.

        Returns:
            Shape (d,), CPU seconds.
        """
        ...

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return how many events come of them, shape (d,)."""
        ...

    def at_speed(self, speed: float) -> CostCurve:
        """Return the same where event time goes so many times faster than the clock, > 0."""
        ...


@dataclass(frozen=True, kw_only=True)
class QueryOperator:
    """One operator O_j.

    Attributes:
        name: unique in its graph.
        inputs: the operators or sources that feed it, a name for each input queue; one may feed
            several.
        cost_s: ω of each input, CPU seconds of an event there, scheduling overhead included.
        selectivity: σ of each input, events out for each event there.
        curve: in place of these two where load and output are not linear; else None.
        alone_s: how long a row takes that finds nothing before it, the fixed part of its slice
            included; 0: no time, as [mace] has it, whose latency is work that is behind.
    """

    name: str
    inputs: tuple[str, ...]
    cost_s: tuple[float, ...]
    selectivity: tuple[float, ...]
    curve: CostCurve | None = None
    alone_s: float = 0.0

    def __post_init__(self) -> None:
        count = len(self.inputs)
        if count == 0 or len(self.cost_s) != count or len(self.selectivity) != count:
            raise SettingError(
                f"operator {self.name!r} has {count} inputs, {len(self.cost_s)} costs and "
                f"{len(self.selectivity)} selectivities; it needs one of each for each input"
            )
        numbers = (*self.cost_s, *self.selectivity, self.alone_s)
        if not all(np.isfinite(numbers)) or min(numbers) < 0:
            raise SettingError(
                f"operator {self.name!r}: costs and selectivities are finite and >= 0, not "
                f"cost_s={self.cost_s}, selectivity={self.selectivity}, alone_s={self.alone_s}"
            )

    def load(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return l_j, CPU seconds in each subinterval, shape (d,). Source: Def. 5, §VI-C."""
        if self.curve is not None:
            return self.curve.load_s(arrivals, width_s)
        return np.asarray(self.cost_s) @ arrivals

    def output(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return how many events it puts out in each subinterval, shape (d,). Source: §VI-C."""
        if self.curve is not None:
            return self.curve.events_out(arrivals, width_s)
        return np.asarray(self.selectivity) @ arrivals


@dataclass(frozen=True)
class QueryGraph:
    """Operators in topological order, and the names of the sources that feed them.

    Raises:
        SettingError: two of one name, or an input that is neither a source nor an operator
            further up.
    """

    sources: tuple[str, ...]
    operators: tuple[QueryOperator, ...]

    def __post_init__(self) -> None:
        known = set(self.sources)
        if len(known) != len(self.sources):
            raise SettingError(f"two sources of one name: {', '.join(self.sources)}")
        for one in self.operators:
            strangers = [name for name in one.inputs if name not in known]
            if strangers:
                raise SettingError(
                    f"operator {one.name!r} is fed by {strangers[0]!r}, which is neither a source "
                    "nor an operator named before it; give operators in topological order"
                )
            if one.name in known:
                raise SettingError(f"two sources or operators are named {one.name!r}")
            known.add(one.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The operators' names, in their order."""
        return tuple(one.name for one in self.operators)

    def at_speed(self, speed: float | None) -> QueryGraph:
        """Return the graph of a stream whose event time goes so many times faster than the clock.

        Curves are of event time: of a stream that becomes denser, windows give fewer results for
        each event, joins more.

        Args:
            speed: 1 where events happen as they arrive; None: as dense as the sample was, however
                fast they come, so that all is linear.
        """
        if speed is not None and not 0 < speed < float("inf"):
            raise SettingError(
                f"speed={speed}: event time goes forward, so many times as fast as the clock; give "
                "a number above 0, or None for a stream that stays as dense as its sample"
            )
        curves = [
            None if speed is None or one.curve is None else one.curve.at_speed(speed)
            for one in self.operators
        ]
        made = [
            replace(one, curve=curve) for one, curve in zip(self.operators, curves, strict=True)
        ]
        return QueryGraph(self.sources, tuple(made))

    def counting_alone(self, factor: float) -> QueryGraph:
        """Return the graph with `alone_s` so many times as long; 0: as [mace] has it."""
        made = [replace(one, alone_s=one.alone_s * factor) for one in self.operators]
        return QueryGraph(self.sources, tuple(made))

    @property
    def sinks(self) -> tuple[str, ...]:
        """The operators whose results leave: those that feed none."""
        fed = {name for one in self.operators for name in one.inputs}
        return tuple(one.name for one in self.operators if one.name not in fed)


@dataclass(frozen=True, eq=False)
class Workload:
    """What arrives at the sources, and what each operator gets and has to do for it.

    A_j and l_j of [mace] §VI-C: everything is counted in the subinterval of its stimulus time, as
    if all that is upstream took no time.

    Attributes:
        width_s: w, length of a subinterval, > 0.
        arrivals: {source or operator: shape (d,), events that it puts out in each subinterval}.
        load_s: shape (m, d), CPU seconds of operator j for events of subinterval p.
    """

    width_s: float
    arrivals: Mapping[str, FloatArray]
    load_s: FloatArray

    @classmethod
    def of(
        cls, graph: QueryGraph, arrivals: Mapping[str, Sequence[float] | FloatArray], width_s: float
    ) -> Workload:
        """Return the workload of a graph. O(d · m). Source: [mace] §VI-C.

        Args:
            graph: what the events go through.
            arrivals: {source: events that arrive in each subinterval}, all as long.
            width_s: w.

        Raises:
            SettingError: a source has no series, or one of another length, or a count below zero.
        """
        if not width_s > 0:
            raise SettingError(
                f"width_s={width_s} must be above 0: it is how long a subinterval is"
            )
        out: dict[str, FloatArray] = {}
        for source in graph.sources:
            if source not in arrivals:
                raise SettingError(
                    f"source {source!r} has no rate: give arrivals for each of "
                    f"{', '.join(graph.sources)}"
                )
            series = np.asarray(arrivals[source], dtype=np.float64)
            if series.ndim != 1 or (series < 0).any() or not np.isfinite(series).all():
                raise SettingError(
                    f"source {source!r}: arrivals are one finite count >= 0 for each subinterval"
                )
            out[source] = series
        lengths = {len(series) for series in out.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise SettingError(
                f"all sources need as many subintervals, and one at least: {lengths}"
            )
        load = np.zeros((len(graph.operators), lengths.pop()))
        for number, one in enumerate(graph.operators):
            came = np.stack([out[name] for name in one.inputs])
            load[number] = one.load(came, width_s)
            out[one.name] = one.output(came, width_s)
        return cls(width_s, out, load)
