"""Which rewrites are allowed, and what is said where one is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError
from slackwater.runtime.rewrite.moves import Before, FlowPlan, Share, Split, rewrites_of

Build = Callable[[sw.Stream, sw.Stream], sw.Stream]
TABLE = pa.table(
    {
        "ts": pa.array(np.arange(4), pa.timestamp("ns")),
        "k": [1, 2, 1, 2],
        "n": [1, 2, 3, 4],
        "x": [0.5, 1.5, 2.5, 3.5],
    }
)
LATE = sw.col("x") > 1


def planned(
    build: Build, predicate: Any = LATE, *, source: dict[str, Any] | None = None, **flow: Any
) -> FlowPlan:
    """A flow of two sources and what `build` makes of them, then a filter named `late`."""
    made = sw.Dataflow("f", **flow)
    a, b = (
        made.source(name, sw.table(TABLE), event_time="ts", **(source or {})) for name in ("a", "b")
    )
    build(a, b).filter(predicate, name="late").sink("out", sw.collect_sink())
    if "b" not in {name for step in made.steps.values() for name in step.inputs}:
        b.sink("rest", sw.collect_sink())
    return FlowPlan(made.graph)


def inputs_of(plan: FlowPlan) -> dict[str, tuple[str, ...]]:
    return {name: step.inputs for name, step in plan.graph.steps.items()}


def joined(a: sw.Stream, b: sw.Stream, **options: Any) -> sw.Stream:
    return a.join(b, on="k", within="1s", name="step", **options)


def counted(a: sw.Stream, _: sw.Stream, **options: Any) -> sw.Stream:
    window = sw.tumbling("1s")
    return a.aggregate(rows=sw.count(), by="k", window=window, name="step", **options)


def counted_by_x(a: sw.Stream, _: sw.Stream) -> sw.Stream:
    return a.aggregate(rows=sw.count(), by="x", window=sw.tumbling("1s"), name="step")


def matched(a: sw.Stream, _: sw.Stream) -> sw.Stream:
    """A pattern of which `up_x` leaves, and which is given a column of that name."""
    up = sw.patterns.event("up", where=sw.col("x") > 1)
    rows = a.with_columns(up_x=sw.col("x") * 2)
    return rows.pattern(sw.patterns.seq(up), within="1s", by="k", name="step")


def doubled(rows: Any) -> Any:
    return rows


ALLOWED: dict[str, tuple[Build, Any, dict[str, tuple[str, ...]]]] = {
    "past a map that leaves its columns": (
        lambda a, _: a.with_columns(y=sw.col("n") + 1, name="step"),
        LATE,
        {"late": ("a",), "step": ("late",), "out": ("step",)},
    ),
    "past a select, by its old name": (
        lambda a, _: a.select("k", x="n", name="step"),
        LATE,
        {"late": ("a",), "step": ("late",)},
    ),
    "past another filter": (
        lambda a, _: a.filter(sw.col("k") == 1, name="step"),
        LATE,
        {"late": ("a",), "step": ("late",)},
    ),
    "to the left of a join": (joined, LATE, {"late": ("a",), "step": ("late", "b")}),
    "to the right of a join": (
        joined,
        sw.col("x_right") > 1,
        {"late": ("b",), "step": ("a", "late")},
    ),
    "to both sides of a join, by its keys": (
        joined,
        sw.col("k") == 1,
        {"late.1": ("a",), "late.2": ("b",), "step": ("late.1", "late.2"), "out": ("step",)},
    ),
    "before a window, by its keys": (
        counted,
        sw.col("k") == 1,
        {"late": ("a",), "step": ("late",)},
    ),
    "before a dedupe, by its keys": (
        lambda a, _: a.dedupe(on="k", within="1s", name="step"),
        sw.col("k") == 1,
        {"late": ("a",), "step": ("late",)},
    ),
    "before a pattern, by its keys": (
        matched,
        sw.col("k") == 1,
        {"step": ("late",), "out": ("step",)},
    ),
    "before a window, by a key that is a float and is compared": (
        counted_by_x,
        LATE & ~sw.col("x").is_in([2.5]),
        {"late": ("a",), "step": ("late",)},
    ),
    "to one side of a join, by a float that is no key": (
        joined,
        1 / sw.col("x") > 0,
        {"late": ("a",), "step": ("late", "b")},
    ),
    "to all inputs of a merge": (
        lambda a, b: a.merge(b, name="step"),
        LATE,
        {"late.1": ("a",), "late.2": ("b",), "step": ("late.1", "late.2")},
    ),
    "past a merge when it asks when": (
        lambda a, b: a.merge(b, name="step"),
        (sw.event_time() > 1) & (sw.col("k") == 1),
        {"late.1": ("a",), "late.2": ("b",), "step": ("late.1", "late.2")},
    ),
}
REFUSED: dict[str, tuple[Build, Any, dict[str, Any], str]] = {
    "what a map makes": (
        lambda a, _: a.with_columns(x=sw.col("x") * 2, name="step"),
        LATE,
        {},
        "reads column 'x', which 'step' makes, changes or brings together",
    ),
    "a function of the user's": (
        lambda a, _: a.map_batches(doubled, schema=TABLE.schema, name="step"),
        LATE,
        {},
        "reads column 'x', which 'step' makes",
    ),
    "columns of both sides": (
        joined,
        sw.col("x") > sw.col("x_right"),
        {},
        "columns x, x_right, of both sides",
    ),
    "what a window counts": (counted, sw.col("rows") > 1, {}, "column 'rows', which 'step' makes"),
    "other columns than a dedupe's keys": (
        lambda a, _: a.dedupe(on="k", within="1s", name="step"),
        LATE,
        {},
        "reads column 'x'",
    ),
    "what an event of a pattern has, though its rows have a column of that name": (
        matched,
        sw.col("up_x") > 1,
        {},
        "column 'up_x', which 'step' makes",
    ),
    "when it happened, behind a join": (
        joined,
        (sw.event_time() == 1) | (sw.col("x") > 1),
        {},
        r"asks event_time\(\), and 'step' makes rows of other times",
    ),
    "totals, by their keys": (
        lambda a, _: a.aggregate(rows=sw.count(), by="k", name="step"),
        sw.col("k") == 1,
        {},
        "'step' makes updates, which leave the filter as deletions and insertions",
    ),
    "a changelog": (
        lambda a, _: a.with_columns(op=sw.lit("+I")).changes("op", name="step"),
        LATE,
        {},
        "'step' makes updates",
    ),
    "a table": (
        lambda a, _: a.to_table("k", name="step"),
        sw.col("k") == 1,
        {},
        "'step' makes updates",
    ),
    "what may be refused, past a filter": (
        lambda a, _: a.filter(sw.col("n") > 0, name="step"),
        12 // sw.col("n") > 3,
        {},
        "may be refused for rows that do not reach it now",
    ),
    "a gate with a slack": (
        lambda a, b: joined(a, b, slack="1s"),
        LATE,
        {},
        "its gate releases by .*, so which rows are late there",
    ),
    "a gate that a deadline sets": (joined, LATE, {"deadline": "1s"}, "its gate releases by"),
    "rows that may come too late": (
        joined,
        LATE,
        {"source": {"idle": "1s"}},
        "rows may come too late there",
    ),
    "replicas that share by number": (
        lambda a, b: joined(a, b, replicas=2, share="all"),
        LATE,
        {},
        "share rows by their number",
    ),
    "windows that leave again": (
        lambda a, b: counted(a, b, late="correct"),
        sw.col("k") == 1,
        {},
        "releases rows again",
    ),
    "what tells -0.0 from 0.0 in a window's key": (
        counted_by_x,
        1 / sw.col("x") > 0,
        {},
        "may tell −0.0 from 0.0 in x",
    ),
    "what tells -0.0 from 0.0 in a join's key": (
        lambda a, b: a.join(b, on="x", within="1s", name="step"),
        sw.where(sw.col("x") > 0, 1.0, 1 / sw.col("x")) > 0,
        {},
        "may tell −0.0 from 0.0 in x",
    ),
    "no column at all": (joined, sw.lit(1) == 1, {}, "reads no column"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_a_filter_goes_where_it_lets_the_same_results_go_on(case: str) -> None:
    build, predicate, expected = ALLOWED[case]
    plan = planned(build, predicate)
    made = plan.done(Before("late", "step"))
    found = inputs_of(made)
    assert {name: found[name] for name in expected} == expected
    assert made.rewrites == ("late before step",)


@pytest.mark.parametrize("case", REFUSED)
def test_a_filter_stays_where_it_would_change_results(case: str) -> None:
    build, predicate, options, reason = REFUSED[case]
    plan = planned(build, predicate, **options)
    with pytest.raises(FlowError, match=f"filter 'late' may not go before 'step': .*{reason}"):
        plan.done(Before("late", "step"))
    assert not list(rewrites_of(plan, of="late".__eq__))


def test_a_filter_stays_where_others_take_what_it_would_let_go() -> None:
    def forked(a: sw.Stream, _: sw.Stream) -> sw.Stream:
        made = a.with_columns(y=sw.col("n"), name="step")
        made.sink("all", sw.collect_sink())
        return made

    with pytest.raises(FlowError, match="'all' takes what leaves 'step', too"):
        planned(forked).done(Before("late", "step"))

    def with_late_rows(a: sw.Stream, b: sw.Stream) -> sw.Stream:
        made = joined(a, b)
        made.late(name="missed").sink("all", sw.collect_sink())
        return made

    with pytest.raises(FlowError, match="'missed' takes what leaves 'step', too"):
        planned(with_late_rows).done(Before("late", "step"))


def test_a_filter_by_keys_may_go_to_one_side_only() -> None:
    plan = planned(joined, sw.col("k") == 1).done(Before("late", "step", port=1))
    assert inputs_of(plan)["step"] == ("a", "late")
    assert plan.rewrites == ("late before step:2",)


def test_a_split_filter_is_a_filter_for_each_condition_in_their_order() -> None:
    plan = planned(joined, LATE & (sw.col("x_right") > 2) & (sw.col("n") == 1)).done(Split("late"))
    found = inputs_of(plan)
    assert (found["late.1"], found["late.2"], found["late.3"]) == (
        ("step",),
        ("late.1",),
        ("late.2",),
    )
    assert found["out"] == ("late.3",)
    with pytest.raises(FlowError, match="is by one condition"):
        plan.done(Split("late.1"))


def test_filters_alike_that_are_all_that_takes_a_stream_become_one() -> None:
    def with_itself(a: sw.Stream, _: sw.Stream) -> sw.Stream:
        return a.join(a, on="k", within="1s", name="step")

    plan = planned(with_itself, (sw.col("x") > 1) & (sw.col("x_right") > 1))
    for rewrite in (Split("late"), Before("late.1", "step"), Before("late.2", "step")):
        plan = plan.done(rewrite)
    plan = plan.done(Share(("late.1", "late.2")))
    assert inputs_of(plan)["step"] == ("late.1", "late.1")
    assert plan.atoms_of("late.1") == ("late.1", "late.2")
    unlike = planned(with_itself, (sw.col("x") > 1) & (sw.col("x_right") > 2))
    for rewrite in (Split("late"), Before("late.1", "step"), Before("late.2", "step")):
        unlike = unlike.done(rewrite)
    with pytest.raises(FlowError, match="are not alike"):
        unlike.done(Share(("late.1", "late.2")))


def test_a_merge_whose_ties_would_break_otherwise_is_not_passed() -> None:
    """`b` is written before `a`'s filter, so rows of one time stand by who was written first."""
    flow = sw.Dataflow("f")
    a = flow.source("a", sw.table(TABLE), event_time="ts")
    b = flow.source("b", sw.table(TABLE), event_time="ts")
    a.sink("all", sw.collect_sink())  # so that a filter of `a` is a stage behind `b`
    b.merge(a, name="step").filter(LATE, name="late").sink("out", sw.collect_sink())
    with pytest.raises(FlowError, match="in another order of its inputs"):
        FlowPlan(flow.graph).done(Before("late", "step"))


def test_the_user_takes_a_plan_by_its_words() -> None:
    flow = sw.Dataflow("f")
    a = flow.source("a", sw.table(TABLE), event_time="ts")
    joined(a, a).filter(LATE & (sw.col("x_right") > 2), name="late").sink("out", sw.collect_sink())
    other = sw.rewritten(flow, "split late", "late.1 before step", "late.2  before  step")
    assert other.steps["step"].inputs == ("late.1", "late.2")
    assert flow.steps["step"].inputs == ("a", "a")  # the flow stays as it is
    with pytest.raises(FlowError, match=r"'late first'.*allowed here: split late"):
        sw.rewritten(flow, "late first")
    with pytest.raises(FlowError, match="of both sides"):
        sw.rewritten(flow, "late before step")


@pytest.mark.parametrize(
    ("how", "column", "ports"),
    [
        ("left", "x", {0}),
        ("anti", "k", {0}),
        ("right", "x_right", {1}),
        ("right", "k", {1}),
        ("semi", "k", {0, 1}),
        ("left", "x_right", set()),
        ("right", "x", set()),
        ("outer", "k", set()),
    ],
)
def test_a_filter_goes_before_a_side_only_if_no_other_row_would_leave_alone(
    how: Any, column: str, ports: set[int]
) -> None:
    plan = planned(lambda a, b: joined(a, b, how=how), sw.col(column) > 1)
    moves = [one for one, _ in rewrites_of(plan) if isinstance(one, Before)]
    assert bool(moves) is bool(ports)
    step = plan.graph.steps["step"]
    names = step.names_before(column)
    assert {port for port, name in enumerate(names) if name is not None} == ports
