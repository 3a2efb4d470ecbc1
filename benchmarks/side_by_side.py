"""Runs in virtual time do not mind each other: they share the machine, a process for each core."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

from benchmarks.frame import counted

__all__ = ["crossed", "side_by_side"]

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


def side_by_side(tasks: Sequence[Callable[[], T]], *, what: str) -> list[T]:
    """Return what the tasks give, in their order, worked off by forks of this process.

    Args:
        tasks: what they give must pickle; they themselves need not.
        what: they are, for who waits.
    """
    if len(tasks) == 1:
        return [tasks[0]()]
    with ProcessPoolExecutor(
        min(len(os.sched_getaffinity(0)), len(tasks)),
        mp_context=get_context("fork"),  # the tasks hold functions, which do not pickle
        initializer=_give,
        initargs=(tasks,),
    ) as pool:
        return list(counted(pool.map(_take, range(len(tasks))), of=len(tasks), what=what))


def crossed(
    settings: Sequence[S], seeds: Sequence[R], run: Callable[[S, R], T], *, what: str
) -> dict[S, list[T]]:
    """Return {setting: results of `run` for each seed}, worked off side by side."""
    tasks = [partial(run, setting, seed) for setting in settings for seed in seeds]
    results = iter(side_by_side(tasks, what=what))
    return {setting: [next(results) for _ in seeds] for setting in settings}


_tasks: list[Callable[[], Any]] = []


def _give(tasks: Sequence[Callable[[], Any]]) -> None:
    _tasks[:] = tasks


def _take(number: int) -> Any:
    return _tasks[number]()
