"""Query graph of a flow: cost and selectivity of each operator.

It is independent of nodes and placement: costs are seconds on a core of speed 1. Source: [mace]
Def. 1, §III-B, §VI-B.
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
    """Return the name of a source's arrivals in a query graph."""
    return f"arrivals of {source}"


class CostCurve(Protocol):
    """Load and output of a nonlinear operator, by subinterval."""

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work on events.

        Args:
            arrivals: shape (inputs, d), events of each input in each subinterval.
            width_s: length of a subinterval.

        Returns:
            Shape (d,), CPU seconds.
        """
        ...

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the events that leave, shape (d,)."""
        ...

    def at_speed(self, speed: float) -> CostCurve:
        """Return the curve for event time `speed` times faster than the clock, > 0."""
        ...


@dataclass(frozen=True, kw_only=True)
class QueryOperator:
    """Operator O_j.

    Attributes:
        name: unique in its graph.
        inputs: the operators or sources that feed it, a name for each input queue; a feeder may
            have several.
        cost_s: ω of each input, CPU seconds of an event there, scheduling overhead included.
        selectivity: σ of each input, events out for each event there.
        curve: replaces these two if load and output are not linear; else None.
        alone_s: time of a row that waits for no other, with the fixed part of its slice; 0: no
            time, as in [mace], where latency is backlog.
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
        """Return its events out in each subinterval, shape (d,). Source: §VI-C."""
        if self.curve is not None:
            return self.curve.events_out(arrivals, width_s)
        return np.asarray(self.selectivity) @ arrivals


@dataclass(frozen=True)
class QueryGraph:
    """Graph of operators in topological order, and the names of their sources.

    Raises:
        SettingError: two have one name, or an input is neither a source nor an earlier operator.
    """

    sources: tuple[str, ...]
    operators: tuple[QueryOperator, ...]

    def __post_init__(self) -> None:
        known = set(self.sources)
        if len(known) != len(self.sources):
            raise SettingError(f"two sources of one name: {', '.join(self.sources)}")
        for operator in self.operators:
            strangers = [name for name in operator.inputs if name not in known]
            if strangers:
                raise SettingError(
                    f"operator {operator.name!r} is fed by {strangers[0]!r}, which is neither a "
                    "source nor an operator named before it; give operators in topological order"
                )
            if operator.name in known:
                raise SettingError(f"two sources or operators are named {operator.name!r}")
            known.add(operator.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operators, in their order."""
        return tuple(operator.name for operator in self.operators)

    def at_speed(self, speed: float | None) -> QueryGraph:
        """Return the graph for event time `speed` times faster than the clock.

        Curves are of event time: in a denser stream windows make fewer results of each event, joins
        more.

        Args:
            speed: 1 if events happen as they arrive; None if the stream stays as dense as its
                sample, however fast events arrive, so that all is linear.

        Raises:
            SettingError: the speed is not above 0 and finite.
        """
        if speed is not None and not 0 < speed < float("inf"):
            raise SettingError(
                f"speed={speed}: event time goes forward, so many times as fast as the clock; give "
                "a number above 0, or None for a stream that stays as dense as its sample"
            )
        curves = [
            None if speed is None or operator.curve is None else operator.curve.at_speed(speed)
            for operator in self.operators
        ]
        made = [
            replace(operator, curve=curve)
            for operator, curve in zip(self.operators, curves, strict=True)
        ]
        return QueryGraph(self.sources, tuple(made))

    def counting_alone(self, factor: float) -> QueryGraph:
        """Return the graph with `alone_s` times a factor; 0: as in [mace]."""
        made = [replace(operator, alone_s=operator.alone_s * factor) for operator in self.operators]
        return QueryGraph(self.sources, tuple(made))

    @property
    def sinks(self) -> tuple[str, ...]:
        """Operators that feed no other: their results leave."""
        fed = {name for operator in self.operators for name in operator.inputs}
        return tuple(operator.name for operator in self.operators if operator.name not in fed)


@dataclass(frozen=True, eq=False)
class Workload:
    """Arrivals at the sources, and the events and load of each operator.

    These are A_j and l_j of [mace] §VI-C: all is counted in the subinterval of its stimulus time,
    as if upstream work took no time.

    Attributes:
        width_s: w, length of a subinterval, > 0.
        arrivals: {source or operator: shape (d,), events out in each subinterval}.
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
            graph: graph of the operators.
            arrivals: {source: events that arrive in each subinterval}, all of one length.
            width_s: w, length of a subinterval.

        Raises:
            SettingError: a source has no series, another length, or a count below zero.
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
                    f"source {source!r}: arrivals must be a finite count >= 0 for each subinterval"
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
