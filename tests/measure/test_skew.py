"""Skew of keys: one replica with far more rows, its hot key, and what the report says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.doctor.findings import findings_of_skew
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.skew import LEAST_ROWS, KeySample, skew_of
from slackwater.runtime.model import batch_of
from slackwater.runtime.model.nullable import Nullable

ROWS = 20_000
KEYS = 500


def hot_none(*names: str) -> dict[str, tuple[str, float]]:
    return dict.fromkeys(names, ("", 0.0))


def counted(keys: np.ndarray, replicas: int) -> JobReport:
    """Count rows by key in a simulation; the mean of floats is not begun beside the source."""
    flow = sw.Dataflow("counted")
    rows = pa.table({"ts": np.arange(len(keys)), "key": keys, "value": keys / 2})
    flow.source("rows", sw.table(rows), event_time="ts", time_unit="ms").aggregate(
        by="key", window=sw.tumbling("1s"), mean=sw.mean("value"), replicas=replicas, name="counts"
    ).sink("out", sw.collect_sink())
    with sw.Simulation(nodes=1, cores=replicas) as nodes:
        return nodes.submit(flow).wait()


def even_keys() -> np.ndarray:
    return np.random.default_rng(1).integers(0, KEYS, ROWS)


def hot_keys() -> np.ndarray:
    keys = even_keys()
    keys[::2] = 7
    return keys


@pytest.mark.parametrize(
    ("rows", "times"),
    [
        ({"a.1": 75_000, "a.2": 25_000}, 3.0),
        ({"a.1": 20_000, "a.2": 20_000, "a.3": 80_000}, 4.0),
        ({"a.1": LEAST_ROWS, "a.2": 0}, LEAST_ROWS),
    ],
)
def test_a_replica_with_far_more_rows_than_each_other_is_named(
    rows: dict[str, int], times: float
) -> None:
    skew = skew_of("a", rows, dict.fromkeys(rows, 64), hot_none(*rows))
    assert skew is not None
    assert skew.replica == max(rows, key=lambda name: rows[name])
    assert skew.times == pytest.approx(times)
    assert skew.share == pytest.approx(max(rows.values()) / sum(rows.values()))


@pytest.mark.parametrize(
    "rows",
    [
        {"a.1": 60_000, "a.2": 40_000},
        {"a.1": 100_000},
        {"a.1": LEAST_ROWS - 2, "a.2": 1},
        {},
    ],
)
def test_even_replicas_a_lone_one_and_few_rows_are_no_skew(rows: dict[str, int]) -> None:
    assert skew_of("a", rows, dict.fromkeys(rows, 64), hot_none(*rows)) is None


def test_a_replica_that_owns_more_key_groups_may_have_more_rows() -> None:
    rows, groups = {"a.1": 80_000, "a.2": 20_000}, {"a.1": 102, "a.2": 26}
    assert skew_of("a", rows, groups, hot_none(*rows)) is None
    skew = skew_of("a", {"a.1": 50_000, "a.2": 50_000}, groups, hot_none(*rows))
    assert skew is not None
    assert (skew.replica, skew.times) == ("a.2", pytest.approx(102 / 26))


def test_a_sample_names_the_key_of_most_rows_in_columns_of_any_kind() -> None:
    numbers = np.array([3, 3, 3, 4, 5, 3, 3, 3, 6, 7])
    columns = {
        "numbers": numbers,
        "nulls": Nullable(numbers, numbers != 5),
        "texts": pa.array([f"bus {n}" for n in numbers]),
    }
    batch = batch_of(np.arange(10), columns)
    for name, hot in (("numbers", "3"), ("nulls", "3"), ("texts", "'bus 3'")):
        sample = KeySample([(name,), (name,)])
        for _ in range(5):
            sample.add([batch, None])
        key, share = sample.hot()
        assert (key, share) == (f"{name}={hot}", pytest.approx(0.6))


def test_keys_that_come_alike_often_are_not_hot() -> None:
    sample = KeySample([("key",)])
    sample.add([batch_of(np.arange(8), {"key": np.arange(8)})])
    assert sample.hot() == ("", 0.0)


def test_the_report_names_step_replica_share_and_hot_key_and_doctor_repeats_it() -> None:
    report = counted(hot_keys(), replicas=4)
    (skew,) = report.skews
    rows = {s.name: s.rows_in for s in report.stages if s.name.startswith("counts.")}
    assert (skew.step, skew.replica) == ("counts", max(rows, key=lambda name: rows[name]))
    assert skew.share == pytest.approx(max(rows.values()) / ROWS)
    assert skew.share > 0.5
    assert skew.key == "key=7"
    assert skew.note in report.notes
    assert "key=7" in skew.note
    assert JobReport.from_json(report.to_json()).skews == [skew]
    (finding,) = findings_of_skew("j-1", report)
    assert (finding.level, finding.about, finding.text) == ("warning", "job j-1", skew.note)


def test_a_run_with_even_keys_has_no_note_of_skew() -> None:
    report = counted(even_keys(), replicas=4)
    assert sum(s.rows_in for s in report.stages if s.name.startswith("counts.")) == ROWS
    assert report.skews == []
    assert not [note for note in report.notes if "skew" in note]
