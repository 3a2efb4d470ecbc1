"""Series of a run under a deadline, by seconds, for pictures as in the paper.

Source: [ssg] Fig. 12, 13: latency, slack, slack-ready events and results over time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

MOST_SPANS = 720
"""Most spans of a series; beyond, neighbours merge: a picture has no more pixels, and a coordinator
writes the whole series every few seconds."""


@dataclass(frozen=True, slots=True)
class GateSpan:
    """Figures of one gate in a span: sums, the largest times, the last slack."""

    slack_ns: int | None = None
    """Slack; without one, the hold."""
    slack_ready: int = 0
    late: int = 0
    latency_ns: int = 0
    skew_ns: int = 0
    by: str = ""
    """Name of the policy or rule that had set the slack; "" if it was not set."""

    def then(self, other: GateSpan) -> GateSpan:
        """Return this span merged with the next one."""
        return GateSpan(
            slack_ns=other.slack_ns,
            slack_ready=self.slack_ready + other.slack_ready,
            late=self.late + other.late,
            latency_ns=max(self.latency_ns, other.latency_ns),
            skew_ns=max(self.skew_ns, other.skew_ns),
            by=other.by,
        )


@dataclass(frozen=True, slots=True)
class TuningSpan:
    """Span of a flow under a deadline: one second, or several merged.

    Attributes:
        second: number of the first second, from the start of the sources on.
        seconds: number of seconds seen.
        latency_ns: largest latency by [ssg] Eq. 2.
        over: number of seconds over the deadline.
        results: rows that reached a sink.
        gates: {tuned step: its gate}.
    """

    second: int
    seconds: int
    latency_ns: int
    over: int
    results: int
    gates: Mapping[str, GateSpan]

    def then(self, other: TuningSpan) -> TuningSpan:
        """Return this span merged with the next one."""
        return TuningSpan(
            second=self.second,
            seconds=self.seconds + other.seconds,
            latency_ns=max(self.latency_ns, other.latency_ns),
            over=self.over + other.over,
            results=self.results + other.results,
            gates={name: gate.then(other.gates[name]) for name, gate in self.gates.items()},
        )


class TuningSeries:
    """Series of spans in time order, 1 s wide; beyond `MOST_SPANS` the width doubles.

    Spans lie at multiples of their width. All have the same gates.

    Attributes:
        width_s: seconds of a span.
    """

    __slots__ = ("_spans", "width_s")

    def __init__(self, spans: Sequence[TuningSpan] = (), *, width_s: int = 1) -> None:
        self._spans = list(spans)
        self.width_s = width_s

    def __repr__(self) -> str:
        return f"TuningSeries({len(self._spans)} spans of {self.width_s} s)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TuningSeries):
            return NotImplemented
        return (self.width_s, self._spans) == (other.width_s, other._spans)

    __hash__ = None  # type: ignore[assignment]

    @property
    def spans(self) -> Sequence[TuningSpan]:
        """Spans in time order; a span without samples is missing."""
        return self._spans

    def add(self, span: TuningSpan) -> None:
        """Add a second later than all others."""
        spans = self._spans
        if spans and spans[-1].second // self.width_s == span.second // self.width_s:
            spans[-1] = spans[-1].then(span)
            return
        spans.append(span)
        if len(spans) > MOST_SPANS:
            self.width_s *= 2
            self._spans = []
            for earlier in spans:
                self.add(earlier)

    def to_json(self) -> dict[str, Any]:
        """Return the series as plain JSON values, column by column."""
        spans = self._spans
        columns = {name: [getattr(span, name) for span in spans] for name in _SPAN}
        gates = {
            gate: {name: [getattr(span.gates[gate], name) for span in spans] for name in _GATE}
            for gate in (spans[0].gates if spans else ())
        }
        return {"width_s": self.width_s, **columns, "gates": gates}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> TuningSeries:
        """Return the series that `to_json` described.

        Raises:
            KeyError, TypeError, ValueError: `plain` is not such a series.
        """
        gates = {
            gate: [GateSpan(*row) for row in zip(*(columns[name] for name in _GATE), strict=True)]
            for gate, columns in plain["gates"].items()
        }
        rows = list(zip(*(plain[name] for name in _SPAN), strict=True))
        if not all(isinstance(value, int) for row in rows for value in row):
            raise ValueError("what a span counts are whole numbers")
        if len(rows) > MOST_SPANS or any(len(values) != len(rows) for values in gates.values()):
            raise ValueError(f"a series has at most {MOST_SPANS} spans, with all gates in each")
        spans = [
            TuningSpan(
                **dict(zip(_SPAN, row, strict=True)),
                gates={gate: values[number] for gate, values in gates.items()},
            )
            for number, row in enumerate(rows)
        ]
        return cls(spans, width_s=int(plain["width_s"]))


_GATE = tuple(field.name for field in fields(GateSpan))
_SPAN = tuple(field.name for field in fields(TuningSpan) if field.name != "gates")
