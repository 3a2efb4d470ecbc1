"""Every setting of ours: unit, range and reason beside each default."""

from __future__ import annotations

from dataclasses import dataclass, fields

from runtime.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What bounds memory and the length of a slice. All numbers must be at least 1."""

    credit_rows: int = 65_536
    """Rows that may be under way on one channel. Six full batches: enough to keep a link busy,
    little enough (a few MB) that a slow stage is felt by its source at once."""

    gate_rows: int = 262_144
    """Rows that a gate holds for one writer before it stops granting credit to it. The writer
    that everybody waits for is always granted: stopping it would stop the gate for ever."""

    slice_ns: int = 2_000_000
    """A slice of work is cut so that it takes about this long: 2 ms, so batching adds no more
    than that to the latency of what waits behind it. Source: [mace] §VI-A, batching."""

    min_slice_rows: int = 1_000
    """But a slice never gets fewer rows than this: below it, overhead is all there is."""

    max_slice_rows: int = 10_000
    """Nor more than this; the sources hand over at most as many."""

    source_gap_ns: int = 250_000
    """A paced source is asked at most this often. Between two looks several events gather: at
    10,000 events a second that is a message for three of them, and a third of the work behind
    it, for 0.1 ms of latency on average."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise SettingError(f"{field.name}={getattr(self, field.name)} must be at least 1")
