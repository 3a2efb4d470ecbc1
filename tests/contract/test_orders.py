"""What every order of a slot's work promises: it is a value, and results do not depend on it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import START_NS
from slackwater.runtime.model.subject import GATE, Part, Subject
from tests.support.orders import ORDERS

SUBJECTS = (Subject("pairs", 1), Subject("pairs", GATE), Subject("counts"), Subject("other"))
ROWS = pa.table({"ts": pa.array(range(1, 401), pa.int64()), "key": pa.array([1, 2] * 200)})


def views(chance: Random) -> list[sw.schedule.StageView]:
    return [
        sw.schedule.StageView(
            subject,
            chance.choice(["source", "merge", "sink"]),
            chance.choice([START_NS, *range(5)]),
            chance.choice([START_NS, 1, 2]),
            chance.randrange(4),
            chance.randrange(5),
            chance.randrange(3),
        )
        for subject in SUBJECTS[: chance.choice([2, 3, 4])]
    ]


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_it_pickles_and_chooses_alike_one_of_what_it_is_shown(order: Any) -> None:
    again = pickle.loads(pickle.dumps(order))  # noqa: S301 - our own
    assert again == order
    chance = Random(5)  # noqa: S311 - a draw, not a secret
    for _ in range(200):
        shown = views(chance)
        chosen = order.first(shown, 9)
        assert chosen in shown
        assert again.first(shown, 9) == chosen
        paths = [
            sw.schedule.PathView(f"{n}→x", Subject(n), chance.randrange(5), 7, 1, 1) for n in "ab"
        ]
        if hasattr(order, "first_path"):
            assert order.first_path(paths, 9) in paths


@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_it_changes_when_results_come_and_not_which(order: Any) -> None:
    def result(given: Any) -> list[dict[str, Any]]:
        flow = sw.Dataflow("pairs")
        left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
        pairs = left.join(right, on="key", within="5ns", name="pairs", replicas=2)
        pairs.aggregate(by="key", window=sw.tumbling("50ns"), name="counts", n=sw.count()).sink(
            "out", sw.collect_sink()
        )
        with sw.Simulation(2, seed=3) as nodes:
            limits = sw.Limits(order=given, max_slice_rows=20, min_slice_rows=1)
            job = nodes.submit(flow, limits=limits)
            assert job.wait().ledger.is_balanced
            return job.result("out").to_pylist()

    plain = result(None)
    assert plain
    assert result(order) == plain


ONE = sw.schedule.StageView(Subject("one"), "sink", 40, START_NS, rows=3, came_ns=90, turn=7)
TWO = sw.schedule.StageView(Subject("two"), "sink", 55, START_NS, rows=9, came_ns=80, turn=8)
SOURCE = sw.schedule.StageView(Subject("source"), "source", 95, 10, rows=0, came_ns=95, turn=9)
LAST = sw.schedule.Priorities({"source": 2, "two": 1})
"""Takes those with the later stimulus first."""


class StagesOnly:
    """An order that does not choose among paths."""

    def first(self, stages: Sequence[sw.schedule.StageView], now_ns: int) -> sw.schedule.StageView:
        del now_ns
        return stages[-1]


@pytest.mark.parametrize(
    ("order", "chosen"),
    [
        (sw.schedule.StimulusOrder(), "one"),
        (sw.schedule.Priorities({"two": 1}), "two"),
        (sw.schedule.Priorities({"one": -1, "source": -0.5}), "two"),
        (sw.schedule.Priorities(), "one"),
        (sw.schedule.CoarseStimulus(20e-9, LAST), "two"),  # 40 and 55 are in [40, 60)
        (sw.schedule.CoarseStimulus(10e-9, LAST), "one"),
        (sw.schedule.CoarseStimulus("1s", LAST), "source"),
    ],
    ids=repr,
)
def test_what_each_goes_by(order: Any, chosen: str) -> None:
    assert order.first([SOURCE, TWO, ONE], 100).name == chosen


def test_what_was_cut_short_goes_on_before_a_subinterval_is_looked_at() -> None:
    cut = TWO._replace(stimulus_ns=START_NS)
    assert sw.schedule.CoarseStimulus("1s", LAST).first([SOURCE, ONE, cut], 100) == cut


def test_paths_are_chosen_by_the_same_words() -> None:
    early = sw.schedule.PathView(
        "a→x", Subject("a"), stimulus_ns=40, came_ns=90, rows=1, messages=1
    )
    late = sw.schedule.PathView("b→x", Subject("b"), stimulus_ns=55, came_ns=80, rows=1, messages=1)
    paths = [late, early]
    assert sw.schedule.Priorities({"b": 1}).first_path(paths, 100) == late
    assert sw.schedule.Priorities().first_path(paths, 100) == early
    assert (
        sw.schedule.CoarseStimulus("20ns", sw.schedule.Priorities({"b": 1})).first_path(paths, 100)
        == late
    )
    assert (
        sw.schedule.CoarseStimulus("10ns", sw.schedule.Priorities({"b": 1})).first_path(paths, 100)
        == early
    )
    assert sw.schedule.CoarseStimulus("20ns", StagesOnly()).first_path(paths, 100) == early


@pytest.mark.parametrize(
    ("priorities", "part"),
    [
        ({"join": 1}, GATE),
        ({"join": 1, "join.gate": -1}, 2),
        ({"join.2": 1}, 2),
        ({"join": -2, "join.2": 2}, 2),
    ],
    ids=repr,
)
def test_priority_of_a_step_is_of_all_parts_without_another(
    priorities: dict[str, float], part: Part
) -> None:
    order = sw.schedule.Priorities(priorities)
    stages = [
        sw.schedule.StageView(subject, "any", stimulus_ns, START_NS, 1)
        for subject, stimulus_ns in (
            (Subject("other"), 0),
            (Subject("join", GATE), 5),
            (Subject("join", 2), 6),
        )
    ]
    assert order.first(stages, 9).subject == Subject("join", part)
    paths = [
        sw.schedule.PathView(f"{one.name}→x", one.subject, one.stimulus_ns, 0, 1, 1)
        for one in stages
    ]
    assert order.first_path(paths, 9).source == Subject("join", part)


@pytest.mark.parametrize("name", ["pears", "pairs.3", "pairs.gates"])
def test_priorities_of_a_wrong_name_are_refused_with_the_nearest(name: str) -> None:
    flow = sw.Dataflow("pairs")
    left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
    pairs = left.join(right, on="key", within="5ns", name="pairs", replicas=2)
    pairs.sink("out", sw.collect_sink())
    order = sw.schedule.CoarseStimulus("1ms", sw.schedule.Priorities({"pairs.2": 1, name: 1}))
    with sw.Simulation(1) as nodes, pytest.raises(SettingError) as caught:
        nodes.submit(flow, limits=sw.Limits(order=order))
    says = str(caught.value)
    assert says.startswith(f"order=Priorities names step {name!r}, which has no stage in the flow")
    assert "; the nearest is 'pairs" in says


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: sw.schedule.CoarseStimulus(0, sw.schedule.Priorities()),
            "width=0 must be more than zero",
        ),
        (lambda: sw.schedule.CoarseStimulus("1s", 7), r"within=7 is an int without first\("),  # type: ignore[arg-type]
        (
            lambda: sw.schedule.Priorities({"a": "high"}),
            "priority 'high' of step 'a' is a str; write",
        ),  # type: ignore[dict-item]
    ],
)
def test_what_is_no_order_is_refused(make: Any, words: str) -> None:
    with pytest.raises(sw.SlackwaterError, match=words):
        make()
