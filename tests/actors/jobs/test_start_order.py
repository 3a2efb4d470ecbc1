"""Orders to start a job, beside its checkpoints."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.actors.jobs.coordinator import Coordinator
from slackwater.actors.jobs.lasting import Checkpointing, Predecessor
from slackwater.actors.jobs.start_order import StartOrder, forget_order, read_order, save_order
from slackwater.runtime.errors import ClusterError


class NeverStarts(Coordinator):
    """A coordinator, without Ray, whose job does not start."""

    def __init__(self, folder: Path) -> None:
        self._checkpoints = Checkpointing(1.0, str(folder))
        self._record: Any = SimpleNamespace(id="city-1", has_ended=False, is_stopping=False)
        self._records: Any = SimpleNamespace(delete=lambda _: None, read=lambda _: None)
        self._is_unwanted = False
        self._has_settled, self._has_ended = threading.Event(), threading.Event()

    def _write(self, **_: Any) -> None:
        pass

    def _try_to_write(self, *_: Any, **__: Any) -> bool:
        return True

    def _start(self, order: StartOrder, predecessor: Predecessor | None = None) -> None:
        del order, predecessor
        raise ClusterError("no node has room")


def test_a_job_that_does_not_start_leaves_no_order(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no node has room"):
        NeverStarts(tmp_path).start(b"plan", nodes={}, notes=[], folder="")
    assert not list(tmp_path.iterdir())


def test_a_job_that_cannot_go_on_leaves_no_order(tmp_path: Path) -> None:
    save_order(str(tmp_path), "city-1", StartOrder(b"plan", {}, [], ""))
    coordinator = NeverStarts(tmp_path)
    coordinator._start_again()
    assert coordinator._has_ended.is_set()
    assert not list(tmp_path.iterdir())


def test_an_order_to_start_is_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    order = StartOrder(b"plan", {}, ["a note"], "out")
    save_order(str(folder), "city-1", order)
    with pytest.raises(AttributeError):
        save_order(str(folder), "city-1", order._replace(notes=[lambda: None]))  # type: ignore[list-item]
    assert read_order(str(folder), "city-1") == order
    assert len(list(folder.iterdir())) == 1
    forget_order(str(folder), "city-1")
    assert not list(folder.iterdir())
