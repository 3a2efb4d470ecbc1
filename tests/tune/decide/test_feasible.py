"""What is certain of a deadline before the flow runs: looks and hops, nothing else."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.tune import deadline_refusal
from slackwater.runtime.tune.decide.feasible import HOP_NS

ROWS = pa.table({"ts": pa.array([1], pa.int64())})
GAP_NS = 250_000


def refusal(plan: Plan, *, source_gap_ns: int = GAP_NS, hop_ns: int = HOP_NS) -> str | None:
    limited = replace(plan, limits=sw.Limits(source_gap_ns=source_gap_ns))
    return deadline_refusal(limited, hop_ns=hop_ns)


def chain(deadline: str | None, *slots: str) -> Plan:
    """Return sources a and b, their merge, and one with c behind it; `slots`: of a b c 1 2."""
    flow = sw.Dataflow("chain", deadline=deadline)
    a, b, c = (flow.source(name, sw.table(ROWS), event_time="ts") for name in "abc")
    a.merge(b, name="first").merge(c, name="second").sink("out", sw.collect_sink())
    where = dict(zip(("a", "b", "c", "first", "second"), slots, strict=True))
    where["out"] = where["second"]
    nodes = sorted(set(slots))
    return place(
        flow.name, plan_stages(flow.graph), nodes, placement=where, deadline_ns=flow.deadline_ns
    )


@pytest.mark.parametrize(
    ("slots", "hops"),
    [
        (("x", "x", "x", "x", "x"), 0),
        (("x", "x", "y", "y", "y"), 1),
        (("x", "x", "x", "y", "x"), 2),
        (("x", "x", "y", "x", "x"), 1),  # only c comes from afar
        (("x", "y", "z", "x", "z"), 2),  # from b, over the first gate
    ],
)
def test_the_least_deadline_is_a_look_and_the_hops_of_the_longest_path(
    slots: tuple[str, ...], hops: int
) -> None:
    least_ns = GAP_NS + hops * HOP_NS
    assert refusal(chain(f"{least_ns}ns", *slots)) is None
    assert "cannot keep its deadline" in (refusal(chain(f"{least_ns - 1}ns", *slots)) or "")


def test_a_hop_counts_for_those_alone_who_take_it() -> None:
    """Of two ways into a gate one hops before the gate and one at it: nobody hops twice."""
    flow = sw.Dataflow("ways", deadline="500us")
    a, b, c = (flow.source(name, sw.table(ROWS), event_time="ts") for name in "abc")
    a.merge(b, name="first").merge(c, name="second").sink("out", sw.collect_sink())
    where = {"a": "y", "b": "y", "first": "x", "c": "y", "second": "x", "out": "x"}
    stages = plan_stages(flow.graph)
    plan = place(flow.name, stages, ["x", "y"], placement=where, deadline_ns=flow.deadline_ns)
    assert refusal(plan) is None  # 250 µs and one hop of 200


def test_without_a_deadline_nothing_is_refused() -> None:
    assert refusal(chain(None, *"xyzxy"), source_gap_ns=10**12, hop_ns=10**12) is None


def test_the_refusal_says_the_least_that_is_possible_why_and_the_way_out() -> None:
    two = refusal(chain("1us", *"xxxyx"), hop_ns=100_000) or ""
    assert "'chain' cannot keep its deadline of 1.00 µs, whatever the slack" in two
    assert "at least 450 µs here, 250 µs until its source looks" in two
    assert "100 µs for each of 2 hops between slots" in two
    assert two.endswith("ask for more, or place the stages together")
    assert "for the hop between slots" in (refusal(chain("1us", *"xxyyy")) or "")


def test_where_all_is_in_one_slot_there_is_nothing_to_place_together() -> None:
    none = refusal(chain("1us", *"xxxxx")) or ""
    assert "no hop between slots" in none
    assert none.endswith("; ask for more")


def test_both_hosts_refuse_at_submit_by_what_a_hop_costs_there() -> None:
    plan = chain("1ms", *"xxxyx")
    said = refusal(plan, source_gap_ns=1, hop_ns=3_000_000)
    assert "3.00 ms for each of 2 hops" in (said or "")
    flow = sw.Dataflow("far", deadline="1ms")
    rows = [flow.source(name, sw.table(ROWS), event_time="ts") for name in "ab"]
    rows[0].merge(rows[1], name="gate").sink("out", sw.collect_sink())
    far = sw.Simulation(3, link=sw.testing.LinkModel(delay_ns=3_000_000))
    with pytest.raises(FlowError, match=r"3\.00 ms for the hop"):
        far.submit(flow)
