"""What a source does with rows out of order is a policy: ours, and one that nobody here knows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.model import END_NS
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.order.reorder import AsTheyCome, OrderedOrRefused, Reorder, SortedWithin
from slackwater.runtime.plan.flow_fingerprints import flow_fingerprints
from slackwater.runtime.sources.spec import SourceSpec
from tests.support.flows import simulated
from tests.support.reorders import Widening
from tests.support.sources import NOW, drain, machine, take, times
from tests.support.states import differences

POLICIES: list[Reorder] = [AsTheyCome(2), SortedWithin(2), Widening(2)]


def test_another_policy_says_what_is_promised_and_when_rows_leave() -> None:
    data = {"t": [3, 5, 3, 9, 5, 8, 20, 15, 14]}  # behind the newest by 0, 0, 2, 0, 4, 1, 0, 5, 6
    source = machine(data, out_of_order=Widening(1))
    assert [(times([m]), m.progress.promise_ns) for m in drain(source, max_rows=1)] == [
        ([], 2),
        ([3], 4),
        ([], 4),  # the second 3 is late, and from here on each row waits for 2
        ([5], 7),
        ([], 7),  # the second 5 is late: each row waits for 4
        ([], 7),
        ([8], 9),  # 20 promises 16, and 9 is still to be handed over
        ([9], 16),
        ([], 16),
        ([], 16),
        ([20], END_NS),
    ]
    assert (source.rows_in, source.late_dropped, source.held) == (9, 4, 0)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("seed", range(5))
def test_a_policy_keeps_promises_loses_nothing_and_goes_on_behind_a_snapshot(
    policy: Reorder, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    data = {"t": (np.arange(60) + rng.integers(-6, 1, 60)).tolist()}
    whole = machine(data, out_of_order=pickle.loads(pickle.dumps(policy)))  # noqa: S301 - ours
    taken = drain(whole, max_rows=3)
    assert len(times(taken)) + whole.late_dropped == 60
    assert whole.late_dropped > 0
    promised_ns = -(2**63)
    for message in taken:
        assert min(times([message]), default=END_NS) >= promised_ns
        assert message.progress.promise_ns >= promised_ns
        promised_ns = message.progress.promise_ns
    if policy.sorts:
        assert times(taken) == sorted(times(taken))
    for stop in range(0, 20, 3):
        begun = machine(data, out_of_order=policy)
        first = [take(begun, NOW, max_rows=3) for _ in range(stop)]
        again = machine(data, out_of_order=policy)
        restore(again, save(begun))
        assert differences(again, begun) == []
        assert times([*first, *drain(again, max_rows=3)]) == times(taken)
        assert again.late_dropped == whole.late_dropped


def test_the_words_name_policies_of_ours() -> None:
    named: dict[str, Reorder] = {
        "error": OrderedOrRefused(7),
        "late": AsTheyCome(7),
        "sort": SortedWithin(7),
    }
    for word, policy in named.items():
        assert spec(out_of_order=word, disorder_ns=7).reorder == policy
        assert spec(out_of_order=policy).reorder is policy


def test_a_flow_with_another_policy_runs_and_is_explained(tmp_path: Path) -> None:
    def flow(first_ns: int) -> sw.Dataflow:
        made = sw.Dataflow("widening")
        source = made.source(
            "events", sw.table(rows), event_time="t", out_of_order=Widening(first_ns)
        )
        source.aggregate(window=sw.tumbling("50ns"), n=sw.count()).sink("n", sw.collect_sink())
        source.sink("all", sw.jsonl_sink(tmp_path / "out.jsonl"))
        return made

    rng = np.random.default_rng(7)
    rows = pa.table({"t": np.arange(500) + rng.integers(0, 40, 500)})
    assert "sorted within what was seen, 5 ns at least" in flow(5).explain()
    digests = {flow_fingerprints(flow(ns).steps)["all"].flow for ns in (5, 5, 6)}
    assert len(digests) == 2, "its settings are of the flow"
    job, report = simulated(flow(5))
    assert not imbalances(report)
    (source,) = [stage for stage in report.stages if stage.kind == "source"]
    assert source.late_dropped > 0
    assert sum(job.result("n")["n"].to_pylist()) == 500 - source.late_dropped


def test_several_writers_are_bounded_by_a_policy_that_has_a_bound() -> None:
    data = {"t": [5, 3], "w": ["a", "b"]}
    source = machine(data, writer="w", out_of_order=Widening(3))
    assert take(source, NOW).progress.promise_ns == 2
    assert spec(writer="w").promises_nothing
    assert not spec(writer="w", out_of_order=Widening(3)).promises_nothing


def test_what_is_no_policy_is_refused() -> None:
    wrong: list[tuple[Any, str]] = [
        ("sorted", "'sorted' must be 'error', 'sort', 'late' or 'sequence', or an order"),
        (7, "out_of_order=7 is not a Reorder: it has no text"),
        (sw.order.by_sequence, r"is not a Reorder: it is a function: call it, by_sequence\(…\)"),
        (Widening, "is not a Reorder: .* 'error', 'sort', 'late' or 'sequence', or an order"),
    ]
    for given, said in wrong:
        with pytest.raises(SettingError, match=said):
            spec(out_of_order=given)
    with pytest.raises(SettingError, match=r"Widening\(.*\) has its own bound"):
        spec(out_of_order=Widening(5), disorder_ns=5)


def spec(**options: Any) -> SourceSpec:
    return SourceSpec(input=sw.table({"t": [1], "w": ["a"]}), event_time="t", **options)


def test_a_policy_that_passes_late_rows_on_counts_them_and_loses_none() -> None:
    data = {"t": [3, 5, 3, 9, 5, 8, 20, 15, 14]}
    dropped = machine(data, out_of_order=Widening(1))
    drain(dropped)
    passed = machine(data, out_of_order=PassingOn(1))
    assert len(times(drain(passed))) == 9
    assert (passed.late, passed.late_dropped, passed.held) == (dropped.late_dropped, 0, 0)


class PassingOn(Widening):
    passes_late = True
