"""A Ray cluster of three hosts, brought up by `ray up` once for all tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.hosts import Host, Hosts, why_not

ROOT = Path(__file__).resolve().parents[2]
CLUSTER_YAML = "/srv/user/cluster.yaml"  # in `outside`
UP_S = 200.0  # on an idle machine 15 s for the head and 15 more for the workers
UP_LIMIT_S = 400  # for a test and the fixture
NODES = """
import json, sys, ray
from tests.support.waiting import until
ray.init(sys.argv[1], logging_level="error", log_to_driver=False)
def alive():
    return [node for node in ray.nodes() if node["Alive"]]
until(lambda: len(alive()) >= int(sys.argv[2]), within_s=float(sys.argv[3]), what="nodes")
print(json.dumps(alive()))
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the test that happens to come first the time for `ray up`."""
    for item in items:
        if "ray_hosts" in getattr(item, "fixturenames", ()) and not item.get_closest_marker(
            "timeout"
        ):
            item.add_marker(pytest.mark.timeout(UP_LIMIT_S))


@dataclass(frozen=True)
class RayHosts:
    """Hosts on which Ray runs: the first is the head; `outside` has the token and no Ray.

    Attributes:
        hosts: all of them, to run things on, to unplug, to kill.
        environment: what a user's shell must have set for token authentication.
    """

    hosts: Hosts
    environment: Mapping[str, str] = field(default_factory=lambda: {"RAY_AUTH_MODE": "token"})

    @property
    def head(self) -> Host:
        return self.hosts.hosts[0]

    @property
    def outside(self) -> Host:
        return self.hosts.outside

    @property
    def address(self) -> str:
        """For drivers on one of the nodes."""
        return f"{self.head.ip}:6379"

    @property
    def client_address(self) -> str:
        """For drivers anywhere: Ray's client."""
        return f"ray://{self.head.ip}:10001"

    @property
    def dashboard(self) -> str:
        """For `ray job submit`."""
        return f"http://{self.head.ip}:8265"

    def nodes(self, count: int, *, within_s: float = UP_S) -> list[dict[str, Any]]:
        """Return what Ray says of the living nodes, as soon as there are `count`."""
        asked = self.head.run(
            ["python3", "-c", NODES, self.address, str(count), str(within_s)],
            timeout=within_s + 30,
            env={**self.environment, "PYTHONPATH": str(ROOT)},
        )
        assert asked.returncode == 0, asked.stderr
        found: list[dict[str, Any]] = json.loads(asked.stdout)
        return found


@pytest.fixture(scope="session")
def ray_hosts() -> Iterator[RayHosts]:
    """Three hosts after `ray up cluster.yaml`, called on `outside`: a head and two workers."""
    if reason := why_not():
        pytest.skip(reason)
    with Hosts(3) as hosts:
        cluster = RayHosts(hosts)
        hosts.write_cluster_yaml(CLUSTER_YAML)
        brought = hosts.outside.run(
            ["ray", "up", CLUSTER_YAML, "--yes"], timeout=UP_S, env=cluster.environment
        )
        assert brought.returncode == 0, f"{brought.stdout}\n{brought.stderr}"
        try:
            cluster.nodes(3)
        except AssertionError as error:
            log = cluster.head.run(
                ["sh", "-c", "tail -n 200 /tmp/ray/session_latest/logs/monitor*"]
            )
            raise AssertionError(f"{error}\n{log.stdout}") from error
        yield cluster
