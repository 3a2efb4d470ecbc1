"""State of `process` is kept to the end, or counted where `within=` lets it be forgotten."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError
from tests.support.flows import simulated

SECOND = 1_000_000_000
BALANCE = {"who": "string", "balance": "int64"}
PAID = [(0, "a"), (1, "b"), (2, "a"), (20, "b"), (21, "c"), (40, "a"), (41, "b"), (44, "b")]


class Account:
    """Sums what a key has paid."""

    def __init__(self) -> None:
        self.balance = 0

    def on_rows(self, who: str, rows: list[Any]) -> list[Any]:
        self.balance += len(rows)
        return [{"who": who, "balance": self.balance}]


def run(
    operator: Any, *, cut: int = 65_536, limits: sw.Limits | None = None, **options: Any
) -> Any:
    times, who = zip(*PAID, strict=True)
    flow = sw.Dataflow("balances")
    data = sw.table({"t": times, "who": who}, batch_rows=cut)
    paid = flow.source("paid", data, event_time="t", time_unit="s")
    made = paid.process(operator, BALANCE, by="who", name="balance", **options)
    flow.merge(made).sink("out", sw.collect_sink())
    job, report = simulated(flow, **({} if limits is None else {"limits": limits}))
    assert report.ledger.is_balanced
    return [tuple(row.values()) for row in job.result("out").to_pylist()], report


def forgotten(report: Any) -> int:
    return sum(stage.counts.by_name()["forgotten"] for stage in report.stages)


@pytest.mark.parametrize("replicas", [1, 2])
def test_without_within_a_key_is_kept_however_long_it_was_silent(replicas: int) -> None:
    rows, report = run(Account, replicas=replicas)
    expected, counts = [], dict.fromkeys("abc", 0)
    for _, who in PAID:
        counts[who] += 1
        expected.append((who, counts[who]))
    assert rows == expected
    assert forgotten(report) == report.ledger.counts.of_job()["forgotten"] == 0


@pytest.mark.parametrize("cut", [1, 3, len(PAID)])
def test_what_within_forgets_is_counted_in_report_ledger_and_notes(cut: int) -> None:
    rows, report = run(Account, cut=cut, within="10s")
    assert rows[-3:] == [("a", 1), ("b", 1), ("b", 2)]
    assert forgotten(report) == 4, "a, b and b again, and c, whose time was over"
    assert report.ledger.counts.of_job()["forgotten"] == 4
    assert "4 keys were forgotten with their state" in str(report.ledger)
    (note,) = [note for note in report.notes if "forgot" in note]
    assert "'balance' forgot the state of 4 keys" in note
    assert "within=None" in note


class Reminds(Account):
    """Is due long after `within`."""

    def __init__(self) -> None:
        super().__init__()
        self.due_ns: int | None = None

    def on_rows(self, who: str, rows: Any) -> list[Any]:
        super().on_rows(who, rows)
        self.due_ns = rows.event_time_ns + 15 * SECOND
        return []

    def on_time(self, who: str, t: int) -> list[Any]:
        return [{"who": who, "balance": 100 * (t // SECOND) + self.balance}]


def test_an_object_is_kept_until_its_due_time_which_within_does_not_bound() -> None:
    rows, report = run(Reminds, within="1s")
    expected = [1601, 1702, 3501, 3601, 5501, 5902]
    assert rows == list(zip("babcab", expected, strict=True))
    assert forgotten(report) == 4, "a, b, b and c; the last of a and b were due after all rows"


class ForEver(Reminds):
    """Is due again whenever it was due."""

    def on_time(self, who: str, t: int) -> list[Any]:
        del who
        self.due_ns = t + SECOND
        return []


def test_an_object_that_is_due_for_ever_ends_the_job_with_its_key() -> None:
    with pytest.raises(
        OperatorError, match=r"ForEver.on_time has set due_ns .* times(.|\n)*key '[abc]'"
    ):
        run(ForEver)


def test_more_keys_than_may_be_kept_end_the_job_and_say_so() -> None:
    tight = sw.Limits(most_kept_rows=2)
    with pytest.raises(OperatorError, match=r"3 keys are kept, more than most_kept_rows=2"):
        run(Account, cut=1, limits=tight)
    rows, _ = run(Account, cut=1, limits=tight, within="10s")
    assert len(rows) == len(PAID)
