"""What `espice-q3` and `espice-q4` share: sequences of certain contracts, in count windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.espice.contest import (
    Found,
    Setting,
    claim_of_amount,
    contest,
    header_of,
    told,
)
from benchmarks.espice.options import Order, Quotes, query_of_steps, quotes, split
from benchmarks.espice.panels import draw
from benchmarks.espice.per_window import Selection
from benchmarks.espice.shedders import (
    ALL_TYPES,
    AT_LEAST,
    BASELINE,
    ESPICE,
    LETTER,
    MAKERS,
    RANDOM,
    RATES,
)
from benchmarks.espice.streams import IntArray, Windows
from benchmarks.espice.trial import Group, Part, Surge, judged
from benchmarks.frame import Claim, Options, Result

SIZES, QUICK_SIZES = (300, 600, 1200, 1500, 1800, 2000), (600, 1200, 2000)
NAMES = (ESPICE, BASELINE, RANDOM, ALL_TYPES, AT_LEAST, LETTER)
NEAR_ZERO = 1.0
"""%."""
HEAVIER, HEAVIER_SIZE = (2.0, 4.0, 10.0), 1_200
"""Input by throughput, in windows of so many events."""


@dataclass(frozen=True)
class Feed:
    """A stream that a sequence is looked for in.

    Attributes:
        contracts: how many, the most active.
        order: how often their order within a minute is drawn.
        selection: first or last.
    """

    contracts: int
    order: Order
    selection: Selection = "first"

    @property
    def panel(self) -> str:
        """What it is called."""
        return f"{self.contracts} contracts, an order {self.order}, {self.selection}"


@dataclass(frozen=True)
class Steps:
    """A query of that kind.

    Attributes:
        steps: the contracts in their order, with repetitions.
        windows: quotes, size -> the windows.
    """

    steps: Callable[[Quotes], IntArray]
    windows: Callable[[Quotes, int], Windows]


def run_sequence(
    name: str, query: Steps, feeds: Sequence[Feed], options: Options, *, figure: str
) -> Result:
    """Try each feed, each window size and each rate.

    Args:
        name: of the benchmark.
        query: the query.
        feeds: the streams.
        options: how to run.
        figure: of the paper.
    """
    sizes = QUICK_SIZES if options.quick else SIZES
    settings = [
        Setting(feed.panel, size, partial(groups, query=query, feed=feed, size=size))
        for feed in feeds
        for size in sizes
    ]
    result = Result(
        "options-goog-1min-2015, the most active contracts; "
        "the second half judged by what the first teaches",
        header_of("ws", NAMES),
    )
    found = contest(settings, options, makers=NAMES, what=name)
    told(
        result,
        settings,
        found,
        paper={(s.panel, s.x, rate): "≈ 0" for s in settings for rate in RATES},
    )
    result.claims += claims(found)
    result.notes += beyond(query, feeds[0], options)
    title = f"{name}: [espice] {figure}, real quotes"
    result.notes.append(f"drawn: {draw(name, settings, found, x='ws, events', title=title)}")
    return result


def groups(seed: int, *, query: Steps, feed: Feed, size: int) -> list[Group]:
    """Return the windows of the second half, and those of the first to train on."""
    of = quotes(feed.contracts, order=feed.order, seed=seed)
    asked = query_of_steps(of, query.steps(of), feed.selection)
    training, judged = split(of, query.windows(of, size))
    return [Group([Part(asked, training)], [Part(asked, judged)])]


def beyond(query: Steps, feed: Feed, options: Options) -> list[str]:
    """Return what heavier overload does, where what stands outside the pattern does not suffice."""
    lines = []
    for rate in HEAVIER:
        surge, tallies = Surge(rate), {}
        for group in groups(options.seed, query=query, feed=feed, size=HEAVIER_SIZE):
            for name in (ESPICE, BASELINE, ALL_TYPES):
                tallies[name] = judged(group, MAKERS[name], surge, seed=options.seed)
        shares = ", ".join(f"{name} {one.negatives:.1f}" for name, one in tallies.items())
        lines.append(
            f"{feed.panel}, ws {HEAVIER_SIZE}, input {rate:g} times the throughput, "
            f"{100 * (1 - 1 / rate):.0f} % dropped: false negatives, %: {shares}"
        )
    return lines


def claims(found: Sequence[Found]) -> list[Claim]:
    """Return the claims that next to nothing is lost, nor made, wherever there are matches."""
    worst = {
        what: max(
            one.runs[rate, ESPICE].mean(what) for one in found if one.is_enough for rate in RATES
        )
        for what in ("negatives", "positives")
    }
    return [
        Claim("false negatives of eSPICE, %, most", worst["negatives"], "<=", NEAR_ZERO),
        Claim("false positives of eSPICE, %, most", worst["positives"], "<=", NEAR_ZERO),
        claim_of_amount(found),
    ]
