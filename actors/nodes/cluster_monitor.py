"""Watch the two processes a driver depends on: the head's gcs_server, its raylet.

```
driver ── one TCP connection a second ──▶ gcs_server      refused four times: the cluster is lost
       └─ the same ─────────────────────▶ our raylet      refused four times: we are cut off
```

Without its head Ray answers no question about the whole cluster, and reports nothing: calls wait,
and after a minute Ray ends the process that made them (`actors/nodes/connecting.py` prevents that).
So each wait for Ray looks here meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError
from ray.util import client

from slackwater.actors.nodes.host_monitor import HostMonitor, answering
from slackwater.actors.nodes.placement import NodeInfo, list_nodes
from slackwater.runtime.errors import ClusterError, WorkerDied
from slackwater.runtime.life import lost_cluster

__all__ = ["ClusterMonitor", "own_cluster_monitor"]

LOOK_S = 0.2
_GCS = "gcs"


class ClusterMonitor:
    """Watches the processes that a driver depends on. Another thread may close it meanwhile.

    Args:
        gcs_address: "host:port" of the head's gcs_server; None if not watched.
        raylet: node whose raylet connects this process to Ray; None if not watched.
        now_s: a clock, in seconds.
    """

    def __init__(
        self,
        gcs_address: str | None,
        raylet: NodeInfo | None,
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        watched: list[NodeInfo] = []
        self._words: dict[str, str] = {}  # {id of a watched process: its description}
        self.lost: str | None = None
        """Description of the lost process; None if none is lost."""
        if gcs_address is not None:
            host, _, port = gcs_address.rpartition(":")
            gcs = NodeInfo(_GCS, _GCS, host.strip("[]"), 0, 0, 0, is_head=True, port=int(port))
            watched.append(gcs)
            self._words[_GCS] = f"the head of the Ray cluster (gcs_server at {gcs_address}) is gone"
        if raylet is not None:
            watched.append(raylet)
            self._words[raylet.node_id] = (
                f"the raylet of node {raylet.name} (host {raylet.ip}), through which this process "
                "speaks to Ray, is gone"
            )
        self._watched = answering(watched)  # a process that a firewall hides cannot be lost
        self._watch = HostMonitor(self._watched, now_s=now_s)
        self._watch.begin()
        self._lock, self._is_closed = threading.Lock(), False

    def look(self) -> str | None:
        """Return the description of a lost process; None if none is known to be lost."""
        with self._lock:
            gone = {} if self.lost is not None or self._is_closed else self._watch.look()
            if gone:
                key = _GCS if _GCS in gone else next(iter(gone))
                self.lost = f"{self._words[key]}: {gone[key]}"
        return self.lost

    def check(self) -> str | None:
        """Return the same, known at once: a process that does not answer now is lost.

        Waits a second at most.
        """
        if self.look() is None:
            alive = answering(self._watched)
            gone = [node for node in self._watched if node not in alive]
            if gone:
                self.lost = f"{self._words[gone[0].node_id]}: it does not answer"
        return self.lost

    def broke(self, problem: OSError) -> str:
        """Record that a call to Ray broke; return the description of the lost process."""
        if self.look() is None:
            self.lost = f"the connection of this process to Ray broke ({problem})"
        assert self.lost is not None
        return self.lost

    def get(
        self, calls: list[Any], timeout_s: float, hosts: HostMonitor | None = None
    ) -> list[Any]:
        """Return the answers to remote calls, as `ray.get` does, unless the cluster goes first.

        Args:
            calls: calls of remote functions or actors.
            timeout_s: time limit for all answers, in seconds.
            hosts: hosts without which no answer comes; None if they are not watched.

        Raises:
            RayError: as `ray.get` raises it, also that the time is over.
            ClusterError: the cluster is lost.
            WorkerDied: a host is lost.
        """
        deadline_s = time.monotonic() + timeout_s
        try:
            while True:
                left_s = max(deadline_s - time.monotonic(), 0)
                waits = ray.wait(calls, num_returns=len(calls), timeout=min(left_s, LOOK_S))[1]
                if not waits or left_s == 0 or _has_failed(calls, waits):
                    return ray.get(calls, timeout=left_s)
                if (gone := self.look()) is not None:
                    raise ClusterError(lost_cluster(gone))
                if hosts is not None and (silent := hosts.look()):
                    lost = ", ".join(hosts.lost_names)
                    raise WorkerDied(
                        f"no answer from {lost}: {'; '.join(silent.values())}; bring {lost} back, "
                        "or do without"
                    )
        except GetTimeoutError:  # an OSError, too, but not of the connection
            raise
        except OSError as problem:
            if not self._watched:  # of a client, whose caller handles it
                raise
            raise ClusterError(lost_cluster(self.broke(problem))) from problem

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            self._is_closed = True
            self._watch.close()


def own_cluster_monitor() -> ClusterMonitor:
    """Return a cluster monitor for the present connection of this process."""
    connection: Any = client.ray  # untyped
    if connection.is_connected() or not ray.is_initialized():
        return ClusterMonitor(None, None)  # a client's proxy breaks its connection by itself
    context: Any = ray.get_runtime_context()
    here = context.get_node_id()
    nodes: Iterable[NodeInfo] = list_nodes()
    return ClusterMonitor(context.gcs_address, next((n for n in nodes if n.node_id == here), None))


def _has_failed(calls: list[Any], waits: list[Any]) -> bool:
    """Return whether an answer is an error: the rest is then not waited for."""
    answered = [call for call in calls if call not in waits]
    try:
        ray.get(answered, timeout=0)
    except GetTimeoutError:
        return False  # the answer is on its way from another node
    except OSError:
        raise
    except Exception:  # of the call; the caller's `ray.get` raises it
        return True
    return False
