"""Connect a driver to an address: find the Ray head, ask it, then call `ray.init`.

`ray.init` alone hangs for minutes on a wrong address, and aborts the process when the token is
missing. So each possible fault is checked first, with its own error.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
import ray._private.ray_constants
import ray._private.services
import ray._private.utils
import ray._private.worker
import ray._raylet

from slackwater.actors.nodes.time_limits import attempt
from slackwater.actors.nodes.tokens import has_token, refuse_shared_token
from slackwater.runtime.errors import ClusterError

__all__ = [
    "Driver",
    "check_cluster",
    "check_versions",
    "find_address",
    "refuse_a_second",
    "settings_for",
]

_services: Any = ray._private.services  # Ray's inside is untyped
_raylet: Any = ray._raylet
_utils: Any = ray._private.utils
_worker: Any = ray._private.worker
CLIENT = "ray://"
"""Scheme of the address of a Ray client's proxy."""
PROBE = Path(__file__).with_name("probe.py")
REACH_S = 3.0  # for a TCP connection to open
CLIENT_TRIES = 3
CLOSE_S = 15.0  # to disconnect; takes 0.1 s, also from a lost head
ANSWER_S = 20.0  # for a Ray head to answer; loading Ray takes 0.4 s of it on an idle machine
# "This host" means 127.0.0.1 to Ray when this is 0, else the address of the network card.
LOOPBACK_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
TOKEN_RULE = (
    "every process of a cluster shows the same token; set RAY_AUTH_MODE=token and "  # noqa: S105
    "RAY_AUTH_TOKEN_PATH=<file with the cluster's token> (on its head: ~/.ray/auth_token)"
)
GCS_PATIENCE = {"RAY_gcs_rpc_server_reconnect_timeout_s": "2000000"}
"""How long calls wait for the cluster's head before Ray ends their process in mid-line; its default
is a minute. The process is our user's, so never: a job notices the loss itself
(`cluster_monitor.py`)."""
OPEN_RULE = (
    "start its nodes with RAY_AUTH_MODE=token, and one token in ~/.ray/auth_token on each of them "
    "(`ray get-auth-token --generate` makes it, `chmod 600` keeps it yours)"
)


def notes_on_the_raylet(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return a note if Ray would end this process with its raylet: see `slackwater/__init__.py`."""
    assumed_raylet = environ.get("RAY_RAYLET_PID")
    if assumed_raylet == str(os.getpid()) or (assumed_raylet is None and os.getppid() != 1):
        return []
    return [
        "Ray was imported before slackwater, so Ray ends this process without a word if its raylet "
        "dies; import slackwater first"
    ]


def refuse_a_second() -> None:
    """Raise ClusterError if this process is already connected to a Ray cluster."""
    if ray.is_initialized():
        raise ClusterError(
            "this process is already connected to Ray, and one process drives one cluster; "
            "close that one first (Cluster.close(), or ray.shutdown())"
        )


def find_address(address: str | None = None) -> str:
    """Return "host:port" of a Ray head, or "ray://host:port" of a Ray client's proxy.

    Args:
        address: either form; None or "auto" takes RAY_ADDRESS, else the only Ray on this host.

    Raises:
        ClusterError: not such an address, or no or several clusters have nodes on this host.
    """
    if address in (None, "auto"):
        address = os.environ.get("RAY_ADDRESS") or "auto"
    if address == "auto":
        _services.find_gcs_addresses.cache_clear()
        addresses = sorted(_services.find_gcs_addresses())
        if len(addresses) == 1:
            return str(addresses[0])
        if addresses:
            raise ClusterError(
                f"several Ray clusters have nodes on this host: {', '.join(addresses)}; "
                "choose one: --address host:port, or Cluster.connect('host:port')"
            )
        raise ClusterError(
            "no Ray cluster has a node on this host; start one with `ray start` or "
            "Cluster.local(), or give an address as 'host:port'"
        )
    assert address is not None
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or "://" in host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise ClusterError(
            f"{address!r} is not an address of a Ray head; write 'host:port', such as "
            "'10.0.0.1:6379', or from outside the cluster 'ray://10.0.0.1:10001'"
        )
    return address


def settings_for(address: str) -> dict[str, str]:
    """Return the environment variables that a driver of this cluster needs in addition.

    Raises:
        ClusterError: no process listens at the address, or others can read our token.
    """
    settings = {"RAY_USAGE_STATS_ENABLED": "0"}
    if "RAY_AUTH_MODE" not in os.environ and (
        "RAY_AUTH_TOKEN_PATH" in os.environ or has_token(os.environ)
    ):
        settings["RAY_AUTH_MODE"] = "token"  # a user with a token means to show it
    refuse_shared_token(os.environ | settings)
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    reason = _why_unreachable(host, int(port))
    if reason is not None:
        raise ClusterError(
            f"no Ray head at {address}: {reason}; look at the address and the port (`ray start` "
            "prints them), and whether the cluster is up (`ray status`)"
        )
    if is_loopback(host) and _why_unreachable(_services.get_node_ip_address(), int(port)):
        settings[LOOPBACK_ONLY] = "0"  # nodes of RayNodes.local() listen on loopback alone
    return settings


def check_cluster(address: str, settings: Mapping[str, str]) -> list[str]:
    """Check the cluster at `address`; return notes for the user.

    Raises:
        ClusterError: the address is not a Ray head, refuses our token, has another version of Ray
            or Python, or no node on this host. Or the cluster accepts peers without a token, and
            not on loopback alone.
    """
    cluster = ask(address, settings)
    if not address.startswith(CLIENT):  # Ray's client checks this itself
        _check_node_here(address, cluster)
    if not cluster["is_open"]:
        return []
    reason = f"the Ray cluster at {address} accepts peers without a token"
    host = address.removeprefix(CLIENT).rpartition(":")[0]
    if all(map(is_loopback, [host, *cluster.get("hosts", [])])):
        return [f"{reason}; {OPEN_RULE}"]
    raise ClusterError(
        f"{reason}, so anyone who reaches its ports can run programs on its nodes; {OPEN_RULE}"
    )


def ask(address: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer of `actors/nodes/probe.py` about the cluster at `address`.

    Raises:
        ClusterError: the address is not a Ray head, or refuses our token.
    """
    try:
        answer = subprocess.run(  # noqa: S603 our own file, no shell
            [sys.executable, "-P", str(PROBE), address],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=True,
        )
        cluster: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        cluster = {"problem": "failed", "detail": f"no answer within {ANSWER_S:.0f} s"}
    except (subprocess.CalledProcessError, IndexError) as error:
        cluster = {"problem": "failed", "detail": str(error)}
    problem = cluster.get("problem")
    if problem == "no token":
        raise ClusterError(
            f"no token for the Ray cluster at {address}: {cluster['detail']}; {TOKEN_RULE}"
        )
    if problem == "refused":
        raise ClusterError(f"the Ray cluster at {address} refuses our token; {TOKEN_RULE}")
    if problem:
        raise ClusterError(
            f"the process at {address} does not answer as a Ray head: {cluster['detail']}; "
            "give the port that `ray start` printed (not the dashboard's, not a client proxy's)"
        )
    return cluster


def _check_node_here(address: str, cluster: Mapping[str, Any]) -> None:
    check_versions(address, ray_version=cluster["ray"], python_version=cluster["python"])
    if not set(cluster["nodes"]) & set(_services.find_node_ids()):
        raise ClusterError(
            f"the Ray cluster at {address} has no node on this host, and a driver needs one; "
            "run this program on one of its nodes (`ray submit`, `ray exec`), or join this host "
            f"with `ray start --address={address}`; from outside, its client proxy takes jobs: "
            f"ray://{address.rpartition(':')[0]}:10001"
        )


def check_versions(address: str, *, ray_version: str, python_version: str) -> None:
    """Refuse a cluster with another version of Ray or Python, as Ray does.

    Raises:
        ClusterError: a version differs.
    """
    ours = (ray.__version__, platform.python_version())
    if (ray_version, python_version) != ours:
        raise ClusterError(
            f"the Ray cluster at {address} runs Ray {ray_version} on Python {python_version}, and "
            f"this process Ray {ours[0]} on Python {ours[1]}; Ray wants both equal: "
            f"use `pip install ray=={ray_version}` under Python {python_version} here"
        )


class Driver:
    """Connects this process to a Ray cluster; one at a time.

    Args:
        address: "host:port" of the head.
        settings: {environment variable: value}, set while connected, restored by `close`.

    Raises:
        ClusterError: already connected, or Ray refuses.
    """

    def __init__(self, address: str, settings: Mapping[str, str]) -> None:
        refuse_a_second()
        settings = {**GCS_PATIENCE, **settings}
        self._before = {name: os.environ.get(name) for name in [*settings, "RAY_AUTH_TOKEN"]}
        if "RAY_AUTH_TOKEN_PATH" in settings:
            os.environ.pop("RAY_AUTH_TOKEN", None)  # it would take precedence
        os.environ.update(settings)
        _read_settings_again()
        try:
            # Quiet: what workers print stays in Ray's logs, and Ray's own notices out of sight.
            # `ray.init` cannot silence those of raylets ("A worker died …"): they go to stdout.
            _worker._worker_logs_enabled = False
            with _same_sigterm():
                _init(address)
        except Exception as error:
            self.close()
            raise ClusterError(
                f"cannot connect to the Ray cluster at {address}: {error}; "
                "look at its nodes with `ray status`"
            ) from error
        except BaseException:  # Ctrl-C
            self.close()
            raise

    def close(self) -> None:
        """Disconnect, and restore the environment. Idempotent."""
        with _same_sigterm():
            attempt(CLOSE_S, ray.shutdown)
        _worker._worker_logs_enabled = True
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self._before = {}
        _read_settings_again()


def _init(address: str) -> None:
    # A client proxy starts a server for each client, which sometimes ends at once (Ray 2.60).
    tries = CLIENT_TRIES if address.startswith("ray://") else 1
    for left in reversed(range(tries)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionAbortedError:
            if not left:
                raise
            ray.shutdown()
        else:
            return


@contextmanager
def _same_sigterm() -> Iterator[None]:
    """Keep this process's handler of SIGTERM.

    `ray.init` replaces it in Python, and by one in C that dumps stacks; `ray.shutdown` lets the
    signal kill. So it waits until either has ended; Ray's threads, started meanwhile, never get it.
    """
    before = signal.getsignal(signal.SIGTERM)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    set_in_python = _utils.set_sigterm_handler
    _utils.set_sigterm_handler = lambda _: None  # another thread may get the signal
    try:
        yield
    finally:
        _utils.set_sigterm_handler = set_in_python
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _read_settings_again() -> None:
    """Make Ray read the environment again, which it does only at its import."""
    ray._private.ray_constants.ENABLE_RAY_CLUSTER = os.environ.get(LOOPBACK_ONLY, "1") != "0"
    _raylet.Config.initialize("")
    _raylet.AuthenticationTokenLoader.instance().reset_cache()


def is_loopback(host: str) -> bool:
    """Return whether only this host can reach such an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _why_unreachable(host: str, port: int) -> str | None:
    """Return why no TCP connection opens; None if one does."""
    try:
        with socket.create_connection((host.strip("[]"), port), timeout=REACH_S):
            return None
    except TimeoutError:
        return f"no answer within {REACH_S:.0f} s"
    except OSError as error:  # no listener, unknown host, no route
        return error.strerror or str(error)
