"""What a reordering makes of event times, as a source asks it; and K-slack a row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from slackwater.runtime.model import START_NS, batch_of
from slackwater.runtime.order.reorder import Reordering


def left(
    order: Reordering,
    times: Sequence[int],
    *,
    cuts: Sequence[int] = (),
    newest_ns: int = START_NS,
    promised_ns: int = START_NS,
) -> tuple[list[int], list[int], list[int]]:
    """Return the times as they leave, the late ones among them, and the promise behind each row.

    Late rows go on where they are. The end of the input is not told. What came before is said by
    its newest and its promise.
    """
    out: list[int] = []
    late: list[int] = []
    promises: list[int] = []
    for start, stop in pairwise([0, *sorted(cuts), len(times)]):
        if start == stop:
            continue
        block = np.array(times[start:stop], dtype=np.int64)
        newest = np.maximum(np.maximum.accumulate(block), newest_ns)
        newest_ns = int(newest[-1])
        for time, now_ns in zip(
            block.tolist(), order.promised_ns(block, newest).tolist(), strict=True
        ):
            is_late = time < promised_ns
            promised_ns = max(promised_ns, now_ns)
            promises.append(promised_ns)
            if is_late:
                late.append(time)
                out.append(time)
            elif (rows := order.put(batch_of([time]), promised_ns)) is not None:
                out += rows.event_time_ns.tolist()
    return out, late, promises


def rest(order: Reordering) -> list[int]:
    """Return what is still held."""
    rows = order.rest()
    return [] if rows is None else rows.event_time_ns.tolist()


def largest_delays(times: Sequence[int], *, at_most: int, delay_from: str) -> list[int]:
    """Return MP-K-slack's K behind each row, by the words of the paper."""
    k, newest, waiting, found = 0, START_NS, [], []
    for time in times:
        if time > newest:
            for one, came in waiting:
                k = max(k, min((time if delay_from == "next" else came) - one, at_most))
            newest, waiting = time, []
        elif 0 < newest - time <= at_most:
            waiting.append((time, newest))
        found.append(k)
    return found


def buffered(times: Sequence[int], waits: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return (as they leave, late ones among them) if rows wait for as long as each says."""
    held: list[int] = []
    out: list[int] = []
    late: list[int] = []
    threshold = newest = last = START_NS
    for time, wait in zip(times, waits, strict=True):
        newest = max(newest, time)
        threshold = max(threshold, newest - wait)
        if time < last:
            late.append(time)
            out.append(time)
            continue
        held = sorted([*held, time])
        while held and held[0] <= threshold:
            last = held.pop(0)
            out.append(last)
    return out, late
