"""Writer of a gate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Writer:
    """Writer of a gate: one of its inputs.

    Attributes:
        port: number of the stream that it belongs to (a merge has one, a join two).
        rank: its place in the tie order; unique, and the same on every run.
        is_mixed: its rows come from several writers (`Batch.writers`), ordered only each in
            itself, or it may send rows that are late already; they are sorted on the way in.
            Without that rows of one time may still be of several writers, if it is shared.
        is_shared: these writers may be those of other inputs of its port, too: what they sent was
            divided further up, and is put into one order by their ranks.
        may_be_late: its rows may be older than it has promised.
    """

    port: int
    rank: int
    is_mixed: bool = False
    is_shared: bool = False
    may_be_late: bool = False
