"""What a report says of a join that does not keep its rows for what may still come."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw


def notes_of(
    *, slack: str | None, keep: Any = None, replicas: int = 1, **options: Any
) -> list[str]:
    """Those that name what a source above the join promises; the options are the left one's."""
    rows = {"ts": [1, 2, 3], "k": [1, 1, 2], "line": ["a", "b", "a"]}
    flow = sw.Dataflow("f", slack=slack)
    buses = flow.source("buses", sw.table(rows), event_time="ts", time_unit="s", **options)
    loops = flow.source("loops", sw.table(rows), event_time="ts", time_unit="s")
    buses.filter(sw.col("k") > 0).merge(name="all").join(
        loops, on="k", within="5s", name="pairs", keep=keep, replicas=replicas
    ).sink("out", sw.collect_sink())
    notes = sw.Simulation(2).submit(flow).wait().notes
    return [note for note in notes if "'buses'" in note]


@pytest.mark.parametrize("slack", ["0s", "1s"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_report_says_that_a_join_goes_by_its_slack_behind_a_source_that_promises_nothing(
    slack: str, replicas: int
) -> None:
    (note,) = notes_of(slack=slack, writer="line", replicas=replicas)
    assert note.startswith("'pairs")
    assert "late ones may miss partners" in note
    assert "'buses' can promise nothing before its end" in note


def test_it_says_nothing_where_no_row_can_miss_a_partner_or_the_promise_was_written() -> None:
    assert notes_of(slack=None, writer="line") == []
    assert notes_of(slack="0s", writer="line", keep="promise") == []
    assert notes_of(slack="0s", writer="line", idle="9s") == []
    assert notes_of(slack="0s", keep="slack") == []
