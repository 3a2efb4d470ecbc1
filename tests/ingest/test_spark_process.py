"""Ends of what Spark leaves, where Ray's list of names is played by the test."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ray

from slackwater.ingest import spark_process
from slackwater.ingest.spark_process import MAPPED_S, end_actors, remove_unpacked
from slackwater.runtime.errors import ClusterError


class Names:
    """A list of named actors, of which some stay though they are killed."""

    def __init__(self, *names: str, stay: bool) -> None:
        self.names, self.killed = list(names), 0
        self._stay = stay

    def list(self) -> list[str]:
        return list(self.names)

    def get(self, name: str) -> str:
        return name

    def kill(self, name: str) -> None:
        self.killed += 1
        if not self._stay:
            self.names.remove(name)


@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.timeout(30)
def test_actors_are_killed_and_those_whose_names_stay_are_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, *, stay: bool
) -> None:
    actors = Names("RAY_APP_MASTER", "raydp-executor-0", "of a user", stay=stay)
    monkeypatch.setattr(ray.util, "list_named_actors", actors.list)
    monkeypatch.setattr(ray, "get_actor", actors.get)
    monkeypatch.setattr(ray, "kill", actors.kill)
    monkeypatch.setattr(spark_process, "KILLED_S", 0.3)
    if stay:
        with pytest.raises(ClusterError, match="RAY_APP_MASTER, raydp-executor-0 were killed"):
            end_actors(patience_s=0)
    else:
        end_actors(patience_s=0)
        assert (actors.names, actors.killed) == (["of a user"], 2)


def test_what_rays_java_unpacked_is_removed_unless_it_is_used_or_of_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark_process, "UNPACKED_IN", tmp_path)
    now_s = time.time()
    ages_s = {"1": 100.0, "2": MAPPED_S + 10, "3": MAPPED_S + 10, "4": 0.0, "session_latest": 20.0}
    for name, age_s in ages_s.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "library.so").write_bytes(b"x")
        os.utime(tmp_path / name, (now_s - age_s, now_s - age_s))
    with (tmp_path / "3" / "library.so").open("rb") as file:
        page = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        remove_unpacked(since_s=now_s - 50)
        page.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["1", "3", "4", "session_latest"]


def test_a_process_ends_though_a_start_of_spark_hangs() -> None:
    hangs = """
import threading
from raydp import context
from slackwater.ingest.spark_process import omit_exit_of_raydp

omit_exit_of_raydp()
start = threading.Thread(target=context._spark_context_lock.acquire, daemon=True)
start.start()
start.join()
"""
    subprocess.run([sys.executable, "-c", hangs], timeout=100, check=True)  # noqa: S603 - our own code; else it hangs, too
