"""The token: who could read it, and clusters that ask for none."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from slackwater.actors.nodes import connecting, local
from slackwater.actors.nodes.connecting import check_cluster, settings_for
from slackwater.actors.nodes.local import LocalNodes
from slackwater.actors.nodes.tokens import has_token, refuse_shared_token, sharing, token_file
from slackwater.runtime.errors import ClusterError


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "RAY_AUTH_MODE": "token", **more}


def test_the_token_is_looked_for_where_ray_does(token: Path, tmp_path: Path) -> None:
    assert token_file(environ(tmp_path)) == token
    named = {**environ(tmp_path), "RAY_AUTH_TOKEN_PATH": "/somewhere/else"}
    assert token_file(named) == Path("/somewhere/else")
    assert token_file({**named, "RAY_AUTH_TOKEN": "itself"}) is None
    assert has_token(environ(tmp_path))
    assert has_token({"RAY_AUTH_TOKEN": "itself"})
    assert not has_token(named)


def test_a_token_of_its_owner_alone_is_taken(token: Path, tmp_path: Path) -> None:
    assert sharing(token) is None
    refuse_shared_token(environ(tmp_path))
    token.chmod(0o400)
    refuse_shared_token(environ(tmp_path))


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o644, "read"),
        (0o640, "read"),
        (0o604, "read"),
        (0o620, "write"),
        (0o666, "read and write"),
    ],
)
def test_a_token_that_others_can_have_is_refused(
    token: Path, tmp_path: Path, mode: int, said: str
) -> None:
    token.chmod(mode)
    said = f"{token} has mode {mode:04o}: others than its owner can {said} it; run: chmod 600 "
    with pytest.raises(ClusterError, match=said) as refused:
        refuse_shared_token(environ(tmp_path))
    assert "nobody-may-see" not in str(refused.value)
    named = environ(tmp_path / "other", RAY_AUTH_TOKEN_PATH=str(token))
    with pytest.raises(ClusterError, match=said):
        refuse_shared_token(named)


def test_a_token_that_is_not_in_use_is_nobodys_business(token: Path, tmp_path: Path) -> None:
    token.chmod(0o644)
    refuse_shared_token({**environ(tmp_path), "RAY_AUTH_MODE": "disabled"})
    refuse_shared_token({**environ(tmp_path), "RAY_AUTH_TOKEN": "itself"})
    refuse_shared_token(environ(tmp_path / "none"))


def test_connecting_looks_at_the_token_before_it_uses_it(
    token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token.chmod(0o644)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ClusterError, match="chmod 600"):
        settings_for("203.0.113.9:6379")


OPEN: dict[str, Any] = {
    "ray": ray.__version__,
    "python": platform.python_version(),
    "nodes": ["here"],
    "is_open": True,
}


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("10.0.0.1:6379", ["10.0.0.1"]),
        ("127.0.0.1:6379", ["10.0.0.1"]),  # its head listens on loopback, too
        ("head:6379", ["127.0.0.1"]),
        ("ray://10.0.0.1:10001", []),
    ],
)
def test_a_cluster_off_loopback_that_takes_anyone_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str, hosts: list[str]
) -> None:
    monkeypatch.setattr(connecting, "ask", lambda *_: {**OPEN, "hosts": hosts})
    monkeypatch.setattr(connecting._services, "find_node_ids", lambda: ["here"])
    said = f"{address} accepts peers without a token, so anyone.*RAY_AUTH_MODE=token"
    with pytest.raises(ClusterError, match=said):
        check_cluster(address, {})


@pytest.fixture(scope="module")
def open_nodes() -> Iterator[LocalNodes]:
    with_token = local._with_token

    def without_token(folder: Path) -> dict[str, str]:
        return {**with_token(folder), "RAY_AUTH_MODE": "disabled"}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "_with_token", without_token)
        nodes = LocalNodes(1)
    with nodes:
        yield nodes


@pytest.mark.ray
@pytest.mark.parametrize("own_token", [None, "a token that nobody asks for"])
def test_an_open_cluster_on_loopback_is_taken_and_told_as_one(
    open_nodes: LocalNodes, own_token: str | None
) -> None:
    shown = {"RAY_AUTH_MODE": "disabled"}
    if own_token is not None:
        shown = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": own_token}
    environ = {**os.environ, **open_nodes.environment, **shown}
    notes = check_cluster(open_nodes.address, environ)
    assert len(notes) == 1
    assert "accepts peers without a token" in notes[0]
    assert "RAY_AUTH_MODE=token" in notes[0]
