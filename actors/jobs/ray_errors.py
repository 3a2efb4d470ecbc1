"""Turn Ray's errors back into ours, as if the worker's error had been raised here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ray.exceptions import RayError

from slackwater.runtime.errors import ClusterError, SlackwaterError, WorkerDied

__all__ = ["not_importable", "take_errors", "unwrapped_ray_error"]


def unwrapped_ray_error(problem: RayError) -> SlackwaterError:
    """Return our error inside a Ray error, or a new one with Ray's words."""
    cause = getattr(problem, "cause", None)
    if isinstance(cause, SlackwaterError):
        return type(cause)(str(cause))
    unknown = re.search(r"No module named '([^']+)'", str(problem))
    if unknown:
        return not_importable(unknown[1])
    return WorkerDied(f"a worker failed to start: {problem}")


def not_importable(module: str) -> ClusterError:
    """Return the error of a module that a worker lacks and the submitter has."""
    return ClusterError(
        f"a worker cannot import {module!r}, from which a function or an input of the flow "
        "comes; install it on the nodes, or put it beside the program or in its working folder"
    )


def take_errors(calls: Iterable[Any]) -> None:
    """Take the errors of calls that nothing else will ask for: Ray prints others.

    Without a wait, so a call may also fail later.
    """
    for call in calls:
        call.future()
