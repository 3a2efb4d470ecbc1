"""Name the actors of a detached job, so that other processes find and end them.

```
slackwater:JOB          its coordinator; Ray makes another in place of one that died
slackwater:JOB/TOKEN    a process of a slot, or a spare, of a job that outlives its coordinator
```

No process owns these. So a coordinator ends those of its job, and each ends by itself once its job
has no coordinator any more.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

import ray

from slackwater.actors.nodes.time_limits import ASK_S, attempt, within
from slackwater.runtime.errors import ClusterError

__all__ = [
    "NAMESPACE",
    "actor_name",
    "coordinator_of",
    "end_processes",
    "has_no_coordinator",
    "process_name",
    "processes_of",
]

NAMESPACE = "slackwater"
KILL_S = 3.0


def actor_name(job_id: str) -> str:
    """Return the name of a job's coordinator among Ray's actors."""
    return f"slackwater:{job_id}"


def process_name(job_id: str) -> str:
    """Return a name for a process of a job that no actor has had before."""
    return f"{actor_name(job_id)}/{secrets.token_hex(8)}"


def coordinator_of(job_id: str) -> Any:
    """Return the actor that runs a job; None if it has ended.

    Raises:
        ClusterError: the cluster's head does not answer.
    """
    return _named(actor_name(job_id))


def has_no_coordinator(job_id: str) -> bool:
    """Return whether a job has no coordinator, and gets none; False if unknown."""
    try:
        return coordinator_of(job_id) is None
    except ClusterError:
        return False


def processes_of(job_id: str) -> list[Any]:
    """Return the actors of a job's processes; also some that Ray has yet to start.

    Raises:
        ClusterError: the cluster's head does not answer.
    """
    ask: Any = ray.util.list_named_actors
    what = f"which processes job {job_id} has"
    every = within(ASK_S, ask, all_namespaces=True, what=what)
    start = process_name(job_id).rpartition("/")[0] + "/"
    names = [e["name"] for e in every if e["namespace"] == NAMESPACE]
    actors = [_named(name) for name in names if name.startswith(start)]
    return [actor for actor in actors if actor is not None]


def end_processes(job_id: str) -> None:
    """End processes of a job that are left, if the cluster answers."""

    def end() -> None:
        for actor in processes_of(job_id):
            ray.kill(actor, no_restart=True)

    attempt(KILL_S, end)


def _named(name: str) -> Any:
    find = ray.get_actor
    with suppress(ValueError):
        return within(ASK_S, find, name, namespace=NAMESPACE, what=f"who is {name}")
    return None
