"""Open the Ray nodes of a flow: start local ones, or connect to a cluster.

Every run on Ray begins here: `RayNodes` gives the nodes, as `actors/nodes/placement.py` lists them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType

from slackwater.actors.nodes.connecting import (
    CLIENT,
    Driver,
    check_cluster,
    find_address,
    notes_on_the_raylet,
    refuse_a_second,
    settings_for,
)
from slackwater.actors.nodes.gateway import usable_nodes
from slackwater.actors.nodes.local import LocalNodes
from slackwater.actors.nodes.placement import LOOK_EVERY_S, NodeInfo
from slackwater.runtime.plurals import agreeing, count_of

__all__ = ["RayNodes"]


class RayNodes:
    """A connected Ray cluster, from `local` or `connect`; a context manager that closes it.

    Attributes:
        address: "host:port" of its head, or "ray://host:port" of its client proxy.
        nodes: the nodes when it opened or at the last `refresh`, head first.
        silent: nodes that Ray believes alive, but whose raylets do not answer.
        is_simulated: whether the nodes are processes of one machine, started by us.
        notes: facts for the cluster's owner or a reader of its figures, one sentence each.
    """

    def __init__(
        self,
        address: str,
        settings: Mapping[str, str],
        *,
        notes: list[str],
        local: LocalNodes | None = None,
    ) -> None:
        self._local = local
        self._driver: Driver | None = None
        self.address = address
        self.notes = [*notes, *notes_on_the_raylet()]
        try:
            self._driver = Driver(address, settings)
            self.nodes: list[NodeInfo] = []
            self.refresh()
        except BaseException:  # Ctrl-C too: no process may remain
            self.close()
            raise

    @classmethod
    def local(
        cls,
        nodes: int = 3,
        *,
        cores: int = 1,
        cpus_per_node: int | None = None,
        object_store_mb: int = 100,
        progress: Callable[[str], None] | None = None,
    ) -> RayNodes:
        """Start Ray nodes on this machine, the head first, and connect to them.

        They are node-1 (the head), node-2, … All end with `close`, or when this process dies.

        Args:
            nodes: number of nodes, >= 1.
            cores: slots of each, >= 1.
            cpus_per_node: logical CPUs of each, which Ray only counts; `cores` + 3 if
                None, the rest for Spark.
            object_store_mb: Ray's object store of each node, MiB, >= 75.
            progress: called with a description of each step.

        Raises:
            SettingError: an argument out of its range.
            ClusterError: they did not start, or this process is already connected.
        """
        refuse_a_second()
        local = LocalNodes(
            nodes,
            cores=cores,
            cpus_per_node=cpus_per_node,
            object_store_mb=object_store_mb,
            progress=progress,
        )
        note = (
            f"{count_of(nodes, 'node')} {agreeing(nodes, 'is', 'are')} simulated on one machine: "
            f"{agreeing(nodes, 'it shares', 'they share')} its clock and its "
            f"{count_of(os.cpu_count() or 1, 'core')}"
        )
        return cls(local.address, local.environment, notes=[note], local=local)

    @classmethod
    def connect(
        cls, address: str | None = None, *, progress: Callable[[str], None] | None = None
    ) -> RayNodes:
        """Connect to a Ray cluster, from one of its nodes or through its client proxy.

        Args:
            address: "host:port" of its head; None or "auto" takes RAY_ADDRESS, else the only
                Ray cluster that has a node on this host. "ray://host:port" of its client
                proxy works from anywhere, for detached jobs only.
            progress: called with a description of each step.

        Raises:
            ClusterError: no or several clusters, a missing or wrong token, another version,
                or no node on this host.
        """
        refuse_a_second()
        tell = progress or (lambda _: None)
        address = find_address(address)
        tell(f"looking for Ray at {address}")
        settings = settings_for(address)
        notes = check_cluster(address, settings)
        tell(f"connecting to {address}")
        return cls(address, settings, notes=notes)

    @property
    def is_simulated(self) -> bool:
        """Whether we started these nodes, all on this machine."""
        return self._local is not None

    @property
    def is_client(self) -> bool:
        """Whether this process is outside the cluster, connected through Ray's client."""
        return self.address.startswith(CLIENT)

    @property
    def free(self) -> dict[str, int]:
        """Number of slots with a free CPU, {node: number}."""
        return {node.name: node.free_slots for node in self.nodes}

    def refresh(self, *, settles_s: float = 0.0) -> None:
        """List the nodes again; silent nodes are omitted.

        Args:
            settles_s: how long to look again if CPUs are busy: Ray reports with a delay that they
                were released.
        """
        deadline_s = time.monotonic() + settles_s
        self.nodes, self.silent = usable_nodes()
        while time.monotonic() < deadline_s and any(n.free_slots < n.cores for n in self.nodes):
            time.sleep(LOOK_EVERY_S)
            self.nodes, self.silent = usable_nodes()

    def close(self) -> None:
        """Disconnect; take the nodes down if this process started them. Idempotent.

        Raises:
            ClusterError: our nodes did not end in time, and were killed.
        """
        try:
            if self._driver is not None:
                self._driver.close()
        finally:
            if self._local is not None:
                self._local.close()

    def __enter__(self) -> RayNodes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
