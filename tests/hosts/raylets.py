"""Ray on test hosts by `ray start`, without the launcher: quicker, and each time anew."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from slackwater.actors.nodes.placement import SLOTS
from tests.hosts.hosts import HOME, ROOT, TOKEN, Host, Hosts

__all__ = ["GCS_PORT", "join", "started"]

GCS_PORT = 6379
START_S = 90.0


@contextlib.contextmanager
def started(
    hosts: Hosts, *, slots: int | None = None, count: int | None = None
) -> Iterator[dict[str, str]]:
    """Start Ray with authentication on hosts, the first as the head.

    It ends with the hosts. Workers find this checkout, so that functions and inputs of tests and
    benchmarks need not be installed.

    Args:
        hosts: all with 4 CPUs, as Ray counts them.
        slots: of each host; None: one for each CPU.
        count: of hosts on which to start it, the first ones; None: on all.

    Returns:
        What a driver on one of the hosts must have in its environment.
    """
    environment = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": f"{HOME}/{TOKEN}",
        "PYTHONPATH": str(ROOT),
    }
    head, *others = hosts.hosts[:count]
    more = [] if slots is None else [f"--resources={json.dumps({SLOTS: slots})}"]
    role = ["--head", "--include-dashboard=false", f"--port={GCS_PORT}", *more]
    _start(head, role, hosts, environment)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda host: join(host, hosts, environment, more=more), others))
    yield environment


def join(
    host: Host, hosts: Hosts, environment: dict[str, str], *, more: Sequence[str] = ()
) -> None:
    """Start Ray on a host, which joins the cluster of the first."""
    _start(host, [f"--address={hosts.hosts[0].ip}:{GCS_PORT}", *more], hosts, environment)


def _start(host: Host, role: list[str], hosts: Hosts, environment: dict[str, str]) -> None:
    file = host.path(environment["RAY_AUTH_TOKEN_PATH"])
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(hosts.token)
    done = host.run(
        [
            *("ray", "start", *role, f"--node-ip-address={host.ip}"),
            *(f"--node-name={host.name}", "--num-cpus=4", "--disable-usage-stats"),
            "--object-store-memory=100000000",
        ],
        timeout=START_S,
        env=environment,
    )
    if done.returncode != 0:
        raise RuntimeError(f"ray start on {host.name}: {done.stdout}{done.stderr}")
