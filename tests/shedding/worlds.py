"""Streams of windows for tests: a pattern that has its places, and noise."""

from __future__ import annotations

from random import Random

import numpy as np

from slackwater.runtime.shedding.windows import FinishedWindows, Places


def windows_of(
    draw: Random,
    *,
    windows: int,
    sizes: tuple[int, int] = (20, 20),
    types: int = 4,
    pattern: tuple[tuple[int, float], ...] = ((0, 0.1), (1, 0.5)),
    match: float = 0.8,
    sample: float = 1.0,
) -> FinishedWindows:
    """Return windows in which each match has an event of each (type, place) of a pattern.

    A place is a share of the window; it is met give or take an event.
    """
    held, hits, events, matches, sampled = [], [], [], [], []
    number = 0
    for window in range(windows):
        size = draw.randint(*sizes)
        kinds = [draw.randrange(types) for _ in range(size)]
        if draw.random() < match:
            for kind, place in pattern:
                at = min(max(int(place * size) + draw.choice((-1, 0, 0, 1)), 0), size - 1)
                kinds[at] = kind
                hits.append((window, kind, at))
                matches.append(number)
            number += 1
        held.append(size)
        sampled.append(draw.random() < sample)
        if sampled[-1]:
            events += [(window, kind, at) for at, kind in enumerate(kinds)]
    return FinishedWindows(
        np.array(held, np.int64),
        places_of(hits),
        np.array(matches, np.int64),
        np.array(sampled, np.bool_),
        places_of(events),
    )


def places_of(rows: list[tuple[int, int, int]]) -> Places:
    """Return (window, type, position) as columns."""
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Places(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())


def pairs_of(finished: FinishedWindows) -> dict[str, np.ndarray]:
    """Return all events of sampled windows as the arguments of `drop`."""
    events = finished.events
    return {
        "types": events.types,
        "positions": events.positions,
        "windows": events.windows,
        "events": np.arange(len(events)) + 1_000,
        "sizes": finished.sizes[events.windows],
    }
