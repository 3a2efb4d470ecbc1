"""The choice of a job's checkpoints: what users say, and what is in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.actors.checkpoints.folder import take_lock
from slackwater.chosen_checkpoints import (
    CheckpointWish,
    ChosenCheckpoints,
    Hosts,
    chosen_checkpoints,
)
from slackwater.runtime.errors import SettingError, SlackwaterError
from tests.support.endless import EndlessInput, LoggedInput

HERE = Hosts([], are_here=True)


def flow_of(given: Any = None) -> sw.Dataflow:
    flow = sw.Dataflow("city")
    numbers = flow.source("numbers", given or LoggedInput(10, 0.0), event_time="ts")
    numbers.sink("out", sw.collect_sink())
    return flow


def chosen(flow: sw.Dataflow, **wish: Any) -> ChosenCheckpoints:
    return chosen_checkpoints(flow, CheckpointWish(**wish), HERE, job="city-1")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_live_flow_takes_them_each_second_below_the_working_folder(own_folder: Path) -> None:
    made = chosen(flow_of())
    assert made.how is not None
    assert (made.how.every_s, made.how.folder) == (1.0, f"{own_folder}/.slackwater/city")
    assert made.text == f"checkpoints each 1 s to {own_folder}/.slackwater/city"
    assert made.note == ""


@pytest.mark.parametrize(
    ("folder", "said"), [("s3://bucket/city", "has the scheme s3://"), ("", "is empty")]
)
def test_a_folder_that_is_not_of_this_machine_is_refused(
    own_folder: Path, folder: str, said: str
) -> None:
    with pytest.raises(SettingError, match=f"checkpoint_folder='{folder}': .*{said}"):
        chosen(flow_of(), folder=folder)
    assert [*own_folder.iterdir()] == []


def test_a_folder_may_be_a_url_of_a_file(own_folder: Path) -> None:
    made = chosen(flow_of(), folder=f"file://{own_folder}/kept")
    assert made.how is not None
    assert made.how.folder == f"{own_folder}/kept"


def test_none_turns_them_off_and_a_flow_with_an_end_has_none() -> None:
    off = chosen(flow_of(), interval=None)
    assert (off.how, off.text, off.note) == (None, "no checkpoints: checkpoint=None says so", "")
    ends = chosen(flow_of(sw.table({"ts": [1], "n": [1]})))
    assert (ends.how, ends.note) == (None, "")
    assert ends.text == "no checkpoints: no source of the flow is live"


def test_a_live_flow_without_them_says_so_in_its_report() -> None:
    made = chosen(flow_of(EndlessInput()))
    assert made.how is None
    assert made.note == made.text
    assert "does not say whether it gives its rows again" in made.note


def test_a_folder_that_another_job_uses_is_left_to_it(own_folder: Path) -> None:
    folder = own_folder / ".slackwater" / "city"
    lock, _ = take_lock(folder, job="city-0", flow="city", has_ended=lambda _: False)
    busy = chosen(flow_of())
    assert busy.how is None
    assert "job 'city-0'" in busy.note
    lock.release()
    assert chosen(flow_of()).how is not None


def test_a_file_in_the_way_lets_the_job_run_without(own_folder: Path) -> None:
    (own_folder / ".slackwater").write_text("mine")
    made = chosen(flow_of())
    assert made.how is None
    assert ".slackwater is no folder" in made.note
    explicit = chosen(flow_of(), interval="1s")
    assert explicit.how is not None, "its error is the job's"


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"interval": "0s"}, "checkpoint"),
        ({"interval": None, "folder": "kept"}, "checkpoint_folder= is of a job with checkpoints"),
        ({"interval": None, "renamed": {"a": "out"}}, "renamed= is of a job with checkpoints"),
        ({"renamed": {"a": "ouf"}}, "has no step 'ouf'; the nearest is 'out'"),
    ],
)
def test_wishes_that_contradict_each_other_are_refused(wish: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        chosen(flow_of(), **wish)


def test_a_folder_of_a_flow_that_takes_none_is_refused() -> None:
    with pytest.raises(SlackwaterError, match=r"takes none: no source of the flow is live; write"):
        chosen(flow_of(sw.table({"ts": [1], "n": [1]})), folder="kept")


def test_asking_makes_no_folder(own_folder: Path) -> None:
    made = chosen_checkpoints(flow_of(), CheckpointWish(), HERE, job=None)
    assert made.how is not None
    assert [*own_folder.iterdir()] == []
