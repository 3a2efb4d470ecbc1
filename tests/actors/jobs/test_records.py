"""Records of detached jobs, in a store that is a dictionary."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.actors.jobs.detached import new_job_id
from slackwater.actors.jobs.records import MOST_RECORDS, JobRecord, Records, Worker, find_record
from slackwater.runtime.errors import ClusterError
from tests.support.reports import city_report
from tests.support.shelf import Shelf


def record(job_id: str = "city-000001", **more: Any) -> JobRecord:
    flow = job_id.rpartition("-")[0]
    known = {"flow": flow, "state": "done", "submitter": "ann@desk", "submitted_ns": 1, **more}
    return JobRecord(id=job_id, **known)


WORKER = Worker("node-1", "ab12", "10.0.0.1", 4711)
text = st.text(max_size=20)
records = st.builds(
    JobRecord,
    id=text,
    flow=text,
    state=st.sampled_from(["starting", "running", "done", "failed", "lost"]),
    submitter=text,
    submitted_ns=st.integers(0, 2**62),
    ended_ns=st.none() | st.integers(0, 2**62),
    placement=st.dictionaries(text, text, max_size=3),
    coordinator=st.none() | st.just(WORKER),
    workers=st.dictionaries(text, st.just(WORKER), max_size=3),
    error=st.none() | text,
)


@given(records)
def test_a_record_is_read_as_it_was_written(written: JobRecord) -> None:
    shelf = Records(Shelf())
    shelf.write(written)
    assert shelf.read(written.id) == written
    assert shelf.all() == [written]


def test_a_report_comes_with_its_record_and_outlives_later_records() -> None:
    shelf = Records(Shelf())
    assert shelf.report("city-000001") is None
    shelf.write(record(state="running"), city_report())
    shelf.write(record(state="done"))
    found = shelf.report("city-000001")
    assert found is not None
    assert found.to_json() == city_report().to_json()
    shelf.delete("city-000001")
    assert shelf.read("city-000001") is None
    assert shelf.report("city-000001") is None


def test_fields_of_another_version_are_left_out() -> None:
    store = Shelf()
    Records(store).write(record())
    plain = json.loads(store.kept["job:city-000001"])
    store.put("job:city-000001", json.dumps({**plain, "mood": "fine"}).encode())
    assert Records(store).read("city-000001") == record()


@pytest.mark.parametrize("found", [b"\x80\x04", b"[]", b"{}", b'{"workers": 3}'])
def test_what_is_no_record_is_named(found: bytes) -> None:
    store = Shelf()
    store.put("job:city-000001", found)
    store.put("report:city-000001", found)
    with pytest.raises(ClusterError, match=r"record of job 'city-000001'.*cannot be read"):
        Records(store).read("city-000001")
    with pytest.raises(ClusterError, match=r"report of job 'city-000001'.*cannot be read"):
        Records(store).report("city-000001")


def test_a_record_that_cannot_be_read_is_listed_as_lost_beside_the_others() -> None:
    store = Shelf()
    Records(store).write(record())
    store.put("job:city-00000\x1b[2J", b"\x80\x04")
    whole, lost = Records(store).all()
    assert whole == record()
    assert (lost.id, lost.state, lost.has_ended) == ("city-00000\x1b[2J", "lost", True)
    assert lost.error is not None
    assert "cannot be read" in lost.error


def test_the_newest_hundred_are_kept_and_those_that_live() -> None:
    shelf = Records(Shelf())
    for number in range(MOST_RECORDS + 10):
        state = "running" if number < 2 else "done"
        shelf.write(record(f"job-{number:06}", state=state, submitted_ns=number), city_report())
    shelf.prune(lives=lambda one: one.id == "job-000001")
    left = [one.id for one in shelf.all()]
    assert left == [f"job-{n:06}" for n in range(MOST_RECORDS + 9, 9, -1)] + ["job-000001"]
    assert shelf.report("job-000000") is None


CITY = [
    record("city-b00002", submitted_ns=3),
    record("city-a00001", submitted_ns=2, state="running"),
    record("bay-c00003", submitted_ns=1),
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("city-b00002", "city-b00002"),
        ("city-b", "city-b00002"),
        ("b", "bay-c00003"),
        ("bay", "bay-c00003"),
        ("city", "city-a00001"),  # the one that runs
    ],
)
def test_a_job_is_found_by_id_by_the_beginning_of_it_and_by_flow(wanted: str, found: str) -> None:
    assert find_record(CITY, wanted).id == found


def test_of_jobs_that_have_ended_a_flow_means_the_newest() -> None:
    ended = [replace(one, state="done") for one in CITY]
    assert find_record(ended, "city").id == "city-b00002"


def test_what_may_mean_several_jobs_or_none_is_said_with_their_names() -> None:
    with pytest.raises(ClusterError, match="'city-' may mean 2 jobs: city-b00002, city-a00001"):
        find_record(CITY, "city-")
    two = [replace(one, state="running") for one in CITY]
    with pytest.raises(ClusterError, match="'city' may mean 2 jobs"):
        find_record(two, "city")
    with pytest.raises(ClusterError, match=r"no job 'sity-b2'.*nearest is 'city-b00002'"):
        find_record(CITY, "sity-b2")
    with pytest.raises(ClusterError, match="this cluster knows no jobs"):
        find_record([], "city")


@given(st.text(max_size=100))
def test_an_id_is_safe_wherever_it_is_written(flow: str) -> None:
    made = new_job_id(flow)
    name, dash, digits = made.rpartition("-")
    assert dash
    assert len(digits) == 6
    assert 1 <= len(name) <= 40
    assert all(one.isascii() and (one.isalnum() or one in "_.-") for one in name)
    assert name[0] not in "-."
