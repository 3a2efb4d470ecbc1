"""What `reorder-*` reckon is what a source does; and their streams are out of order as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slackwater as sw
from benchmarks.order.disorder import (
    DATASETS,
    MS,
    SPACING_NS,
    Arrivals,
    Dataset,
    from_several,
    imitated,
    steps_back,
)
from benchmarks.order.replay import Outcome, buffered, pooled, sequenced
from tests.support.sources import machine, next_due_ns, take

BUFFERS = [
    sw.order.k_slack("2ms", late="pass"),
    sw.order.mp_k_slack(late="pass"),
    sw.order.aq_k_slack(window="5ms", coverage=0.99, gains=(0.2, 0.02), late="pass"),
]
NUMBERED = [
    sw.order.by_sequence(late="pass", restart="first"),
    sw.order.by_sequence(late="pass", restart="added", least="1ms", timeout="4ms"),
]


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda one: one.name)
def test_a_dataset_is_as_much_out_of_order_as_the_thesis_says(dataset: Dataset) -> None:
    short = dataset.shortened(60_000)
    stream = imitated(short, SPACING_NS * np.arange(60_000), np.random.default_rng(1))
    assert stream.out_of_order == pytest.approx(short.out_of_order, rel=0.002)
    delay_ms = (stream.arrival_ns - stream.event_ns) / MS
    near = delay_ms[(delay_ms > 0) & (delay_ms < dataset.far_ms[0])]
    assert dataset.mean_ms[0] < near.mean() < dataset.mean_ms[1]
    assert delay_ms.max() <= dataset.far_ms[1]
    assert np.array_equal(np.sort(stream.number), np.arange(60_000))


def test_several_sources_send_the_same_three_milliseconds_apart() -> None:
    stream = small(sources=3)
    for source in range(3):
        events_ns = np.sort(stream.event_ns[stream.source == source])
        assert np.array_equal(events_ns, SPACING_NS * np.arange(400) + 3 * MS * source)
    assert (np.diff(stream.arrival_ns) >= 0).all()


@pytest.mark.parametrize("policy", BUFFERS, ids=lambda one: one.text)
def test_a_buffer_is_reckoned_as_a_source_runs_it(policy: Any) -> None:
    stream = small()
    told = run(stream, out_of_order=policy)
    assert buffered("it", policy, stream) == told
    assert told.mean_ms > 0


@pytest.mark.parametrize("policy", NUMBERED, ids=lambda one: one.restart)
@pytest.mark.parametrize("sources", [1, 3])
def test_order_by_number_is_reckoned_as_a_source_runs_it(policy: Any, sources: int) -> None:
    stream = small(sources=sources)
    if sources > 1:
        policy = sw.order.by_sequence(late="pass", merge=True, least="1ms", timeout="4ms")
    told = run(stream, out_of_order=policy, sequence="number", writer="source")
    assert sequenced("it", policy, stream) == told


def test_what_steps_back_is_counted_beside_the_row_just_before() -> None:
    assert steps_back(np.array([1, 4, 3, 5, 6, 9, 7, 8, 10, 13])) == 2  # 3 and 7; 8 is behind 9


def test_streams_are_pooled_by_their_rows() -> None:
    one = Outcome("it", 1.0, 5.0, 2.0, 1, 90.0, rows=100, came_out_of_order=10)
    more = Outcome("it", 4.0, 4.0, 5.0, 0, 100.0, rows=200, came_out_of_order=30)
    assert pooled([one, more]) == Outcome(
        "it", 3.0, 5.0, 4.0, 1, 97.5, rows=300, came_out_of_order=40
    )


def small(sources: int = 1) -> Arrivals:
    """Return rows of which an eighth is behind, a few of them far."""
    dataset = Dataset("dataset 0", 400, 50, (0.2, 0.9), (2, 9), every_s=0.01)
    rng = np.random.default_rng(4)
    return from_several(dataset, SPACING_NS * np.arange(400), rng, sources=sources)


def run(stream: Arrivals, **options: Any) -> Outcome:
    """Let a source replay the rows, asked for more whenever it says that there may be."""
    rows = len(stream.event_ns)
    columns = {
        "t": stream.event_ns,
        "came": stream.arrival_ns,
        "row": np.arange(rows),
        "number": stream.number,
        "source": stream.source,
    }
    first_ns = int(stream.arrival_ns[0])
    source = machine(columns, arrival="came", speed=1.0, start_ns=first_ns, **options)
    left_ns = np.empty(rows, dtype=np.int64)
    order: list[int] = []
    now_ns = first_ns
    while not source.is_ended:
        due_ns = next_due_ns(source, now_ns)
        assert due_ns is not None
        now_ns = max(now_ns, due_ns)
        message = take(source, now_ns, max_rows=1)
        if message is not None and message.batch is not None:
            taken = np.asarray(message.batch.columns["row"])
            left_ns[taken] = now_ns
            order += taken.tolist()
    assert sorted(order) == list(range(rows))
    return Outcome.of("it", stream, left_ns, np.array(order))
