"""What every source promises: restored between any two calls it goes on alike; it ends once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.arrivals import ArrivalTeller
from tests.support.any_flow import MS, any_flow
from tests.support.restoring import check_restored_anywhere
from tests.support.sources import next_due_ns, take

SEEDS = range(24)
CALLS = 40
COUNTS = (
    *("rows_in", "late", "late_dropped", "held", "early"),
    *("duplicates", "given_up", "renumbered"),
)


def sources(seed: int) -> list[Stage]:
    """The sources of a flow at random: of every way to write one."""
    return [stage for stage in any_flow(seed).stages if isinstance(stage.step, SourceStep)]


def maker(stage: Stage) -> Callable[[], SourceNode]:
    def make() -> SourceNode:
        assert isinstance(stage.step, SourceStep)
        return SourceNode(
            stage.name,
            stage.step.source,
            stage.step.schema,
            writer_id=stage.rank,
            start_ns=0,
            needed=stage.needed,
            teller=ArrivalTeller(20 * MS, rank=stage.rank, speed=stage.step.source.speed),
        )

    return make


def calls(chance: Random) -> list[Callable[[SourceNode], Any]]:
    """Looks and takes while time goes on; at last everything that is left."""
    made: list[Callable[[SourceNode], Any]] = []
    now_ns = 0
    for _ in range(CALLS):
        now_ns += chance.choice([0, 5, 60, 200]) * MS
        rows = chance.choice([1, 7, 40, 1_000])
        made.append(lambda source, at=now_ns: next_due_ns(source, at))
        made.append(lambda source, at=now_ns, most=rows: take(source, at, max_rows=most))
        made.append(lambda source: [getattr(source, word) for word in COUNTS])
    late_ns = now_ns + 10**12
    return [*made, *[lambda source: take(source, late_ns) for _ in range(60)]]


@pytest.mark.parametrize("part", range(2))
def test_a_source_that_is_restored_anywhere_hands_over_the_same(part: int) -> None:
    for seed in SEEDS[part::2]:
        for stage in sources(seed):
            chance = Random(seed)  # noqa: S311 - a draw, not a secret
            who = f"{stage.name} of seed {seed}"
            check_restored_anywhere(maker(stage), calls(chance), chance, restarts=12, who=who)


def test_a_source_promises_ever_more_keeps_its_word_for_rows_in_order_and_ends_once() -> None:
    for seed in SEEDS:
        for stage in sources(seed):
            source = maker(stage)()
            promise_ns, rows = START_NS, 0
            while (message := take(source, 10**13, max_rows=7)) is not None:
                assert promise_ns < END_NS, "nothing comes behind the end"
                assert message.progress.promise_ns >= promise_ns
                promise_ns = message.progress.promise_ns
                rows += message.rows
            assert (promise_ns, source.is_ended) == (END_NS, True)
            assert rows + source.late_dropped + source.duplicates == source.rows_in
            assert source.held == 0
