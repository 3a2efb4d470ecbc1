"""What is refused before Ray is asked, and why: no Ray runs here."""

from __future__ import annotations

import platform
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import ray

from slackwater.actors.nodes import connecting
from slackwater.actors.nodes.connecting import (
    check_cluster,
    check_versions,
    find_address,
    settings_for,
)
from slackwater.runtime.errors import ClusterError


class Here:
    """Stands in for Ray's search for clusters on this host."""

    def __init__(self, *found: str) -> None:
        self.found = set(found)

    def __call__(self) -> set[str]:
        return self.found

    def cache_clear(self) -> None:
        """Forget nothing: nothing is remembered."""


@pytest.fixture(autouse=True)
def _no_token_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def found(*addresses: str) -> None:
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        monkeypatch.setattr(connecting._services, "find_gcs_addresses", Here(*addresses))

    return found


@pytest.mark.parametrize("address", [None, "auto"])
def test_the_one_cluster_on_this_host_is_found(
    here: Callable[..., None], address: str | None
) -> None:
    here("10.0.0.1:6379")
    assert find_address(address) == "10.0.0.1:6379"


def test_ray_address_comes_before_a_search(
    here: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    here("10.0.0.1:6379")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.2:6379")
    assert find_address() == "10.0.0.2:6379"
    assert find_address("10.0.0.3:1") == "10.0.0.3:1"


def test_two_clusters_on_this_host_are_ambiguous(here: Callable[..., None]) -> None:
    here("10.0.0.1:6379", "10.0.0.1:7000")
    with pytest.raises(ClusterError, match=r"10.0.0.1:6379, 10.0.0.1:7000; choose one"):
        find_address()


def test_no_cluster_on_this_host_is_said(here: Callable[..., None]) -> None:
    here()
    with pytest.raises(ClusterError, match="no Ray cluster has a node on this host"):
        find_address("auto")


def test_a_ray_client_address_is_taken_as_it_is() -> None:
    assert find_address("ray://10.0.0.1:10001") == "ray://10.0.0.1:10001"
    with pytest.raises(ClusterError, match=r"from outside the cluster 'ray://10.0.0.1:10001'"):
        find_address("ray://10.0.0.1")
    with pytest.raises(ClusterError, match="is not an address of a Ray head"):
        find_address("http://10.0.0.1:8265")


@pytest.mark.parametrize("address", ["", "host", "host:", ":6379", "host:port", "host:70000"])
def test_what_is_no_address_is_refused(here: Callable[..., None], address: str) -> None:
    here()
    with pytest.raises(ClusterError, match="write 'host:port'"):
        find_address(address)


def test_nobody_listening_is_found_out_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        said = rf"no Ray head at 127.0.0.1:{port}: Connection refused"
        with pytest.raises(ClusterError, match=said):  # it is ours, and listens to nobody
            settings_for(f"127.0.0.1:{port}")


def test_a_listener_that_is_not_ray_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "ANSWER_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ClusterError, match="does not answer as a Ray head"):
            check_cluster(address, settings_for(address))


def test_a_token_in_the_environment_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "some/file")
        assert settings_for(address)["RAY_AUTH_MODE"] == "token"
        monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
        assert "RAY_AUTH_MODE" not in settings_for(address)


def test_equal_versions_are_taken() -> None:
    check_versions("h:1", ray_version=ray.__version__, python_version=platform.python_version())


@pytest.mark.parametrize(
    ("ray_version", "python_version"), [("2.9.0", platform.python_version()), ("", "3.8.1")]
)
def test_another_version_is_refused_with_both(ray_version: str, python_version: str) -> None:
    with pytest.raises(ClusterError, match=f"Ray wants both equal.*Python {python_version}"):
        check_versions(
            "h:1", ray_version=ray_version or ray.__version__, python_version=python_version
        )
