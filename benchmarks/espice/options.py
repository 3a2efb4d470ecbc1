"""Q2, Q3, Q4 of [espice] on `options-goog-1min-2015`: contracts stand for the paper's stocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
import pyarrow.parquet as pq

from benchmarks.espice.per_window import NOTHING, Alternative, AnyAfter, Selection, Steps
from benchmarks.espice.streams import BoolArray, FloatArray, IntArray, Pace, Query, Windows
from examples.real_data import options_quotes

Order = Literal["a minute", "a run"]
"""How often the order of contracts is drawn: anew for each minute, or once for the whole run, as
of a feed that asks one contract after the other."""
TRAINING_MINUTES = 105
"""The first half of the session; the other is judged."""
LEADING = 5
STEPS = 20
REPEATED = (1, 1, 2, 3, 2, 4, 2, 5, 6, 7, 2, 8, 9, 10)
"""Q4's list: the n of each RE_n."""


@dataclass(frozen=True)
class Quotes:
    """Quotes of the chosen contracts; arrays of shape (events,).

    Attributes:
        minute: since the first.
        contract: code of each event's type; the most active has 0, see `quotes`.
        change: of the mid price at the close of the minute since the contract's quote before:
            1 rising, −1 falling, 0 neither.
        place: shape (contracts,), each contract's place in the order of the run.
        is_call: shape (contracts,).
    """

    minute: IntArray
    contract: IntArray
    change: IntArray
    place: IntArray
    is_call: BoolArray

    @property
    def calls(self) -> IntArray:
        """The calls, the most active one first: all follow one price, so they rise together."""
        return np.flatnonzero(self.is_call)

    @property
    def leading(self) -> IntArray:
        """The leading symbols: the most active calls."""
        return self.calls[:LEADING]

    @property
    def is_leading(self) -> BoolArray:
        """Which events are rising or falling quotes of a leading symbol: MLE."""
        found: BoolArray = np.isin(self.contract, self.leading) & (self.change != 0)
        return found


def quotes(contracts: int, *, order: Order, seed: int) -> Quotes:
    """Return the quotes of the most active contracts, those of a minute in an order drawn.

    Active is by the rising and falling quotes of the minutes for training alone.

    Args:
        contracts: how many.
        order: how often the order is drawn.
        seed: of the order.
    """
    minute, contract, change, is_call = _all_quotes()
    early = (minute < TRAINING_MINUTES) & (change != 0)
    active = np.bincount(contract[early], minlength=len(is_call))
    chosen = np.argsort(-active, kind="stable")[:contracts]
    code = np.full(len(is_call), NOTHING)
    code[chosen] = np.arange(contracts)
    kept = np.flatnonzero(code[contract] >= 0)
    generator = np.random.default_rng(seed)
    place = generator.permutation(contracts)
    by_row: FloatArray = (
        generator.random(len(kept)) if order == "a minute" else place[code[contract[kept]]] * 1.0
    )
    kept = kept[np.lexsort((by_row, minute[kept]))]
    return Quotes(minute[kept], code[contract[kept]], change[kept], place, is_call[chosen])


@cache
def _all_quotes() -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """Return minute, code of the contract, change of each quote; which contracts are calls."""
    table = pq.read_table(options_quotes() / "goog_options_2015-12-24.parquet")
    time_ms = table["minute_start_ms"].to_numpy().astype(np.int64)
    minute = (time_ms - time_ms.min()) // 60_000
    names, contract = np.unique(
        table["contract"].to_numpy(zero_copy_only=False), return_inverse=True
    )
    bid, ask = (
        table[name].to_numpy(zero_copy_only=False).astype(np.float64)
        for name in ("bid_close", "ask_close")
    )
    by_contract = np.lexsort((minute, contract))
    middle = (bid + ask)[by_contract]  # NaN where a side had no quote
    step = np.diff(middle, prepend=np.nan)
    step[np.diff(contract[by_contract], prepend=-1) != 0] = np.nan
    change = np.zeros(len(contract), np.int64)
    change[by_contract] = np.sign(np.nan_to_num(step, nan=0.0)).astype(np.int64)
    # OCC: root, six digits of the date, C or P, eight digits of the strike.
    is_call = np.array([name[-9] == "C" for name in names])
    return minute, contract.astype(np.int64), change, is_call


def query_2(of: Quotes, count: int, selection: Selection) -> Query:
    """Return `seq(MLE; any(n, RE…)) or seq(MLE; any(n, FE…))`, of any contracts."""
    head = of.is_leading
    return Query(
        of.contract,
        [
            Alternative(
                partial(AnyAfter, count, selection),
                np.where(of.change == sign, of.contract, NOTHING).tolist(),
                head.tolist(),
            )
            for sign in (1, -1)
        ],
        of.change != 0,
        np.ones(len(of.is_call), np.int64),
        of.change + 1,
    )


def query_of_steps(of: Quotes, steps: IntArray, selection: Selection) -> Query:
    """Return `seq(RE…; …) or seq(FE…; …)` of these contracts, in this order."""
    in_steps = np.isin(of.contract, steps)
    labels = tuple(steps.tolist())
    none = [False] * len(of.contract)
    return Query(
        of.contract,
        [
            Alternative(
                partial(Steps, labels, selection),
                np.where(in_steps & (of.change == sign), of.contract, NOTHING).tolist(),
                none,
            )
            for sign in (1, -1)
        ],
        in_steps & (of.change != 0),
        np.bincount(steps, minlength=len(of.is_call)),
    )


def steps_3(of: Quotes) -> IntArray:
    """Return Q3's 20 contracts: the most active calls, in the order of the run."""
    chosen = of.calls[:STEPS]
    return chosen[np.argsort(of.place[chosen])]


def steps_4(of: Quotes) -> IntArray:
    """Return Q4's 14 steps: the ten most active calls, numbered in the order of the run."""
    chosen = of.calls[: max(REPEATED)]
    chosen = chosen[np.argsort(of.place[chosen])]
    steps: IntArray = chosen[np.array(REPEATED) - 1]
    return steps


def opened_by_leading(of: Quotes, minutes: float) -> Windows:
    """Return a window of so many minutes for each rising or falling quote of a leading symbol.

    A quote is of its minute as a whole; within it time goes on from event to event, evenly.
    """
    starts = np.flatnonzero(of.is_leading)
    numbers = np.arange(len(of.minute))
    first = np.searchsorted(of.minute, of.minute)
    count = np.searchsorted(of.minute, of.minute, side="right") - first
    time = (of.minute + (numbers - first) / count).astype(np.float64)
    until = time[starts] + minutes
    whole = until <= of.minute[-1]
    starts = starts[whole]
    pace = Pace(time, minutes, numbers - np.searchsorted(time, time - minutes))
    return Windows(starts, np.searchsorted(time, until[whole]), pace)


def counted_by_leading(of: Quotes, size: int) -> Windows:
    """Return a window of so many events for each rising or falling quote of a leading symbol."""
    starts = np.flatnonzero(of.is_leading)
    starts = starts[starts + size <= len(of.minute)]
    return Windows(starts, starts + size)


def counted(of: Quotes, size: int, every: int) -> Windows:
    """Return a window of so many events at the 1st, (1 + every)-th, … event."""
    starts = np.arange(0, len(of.minute) - size + 1, every)
    return Windows(starts, starts + size)


def split(of: Quotes, windows: Windows) -> tuple[Windows, Windows]:
    """Return windows for training and others to be judged; those that lie in both are left out."""
    ends = of.minute[windows.stops - 1]
    begins = of.minute[windows.starts]
    return windows.of(ends < TRAINING_MINUTES), windows.of(begins >= TRAINING_MINUTES)
