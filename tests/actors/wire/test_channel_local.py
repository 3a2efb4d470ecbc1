"""Channels on one host: who is on it, who gets in, and that nothing stays in the temp folder."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import zmq

from slackwater import Dataflow, collect_sink, table
from slackwater.actors.kernel import boot
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.wire import local_sockets
from slackwater.actors.wire.channel import Receiver, Sender
from slackwater.actors.wire.local_sockets import host_identity
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.slot_plan import SlotPlan
from tests.actors.wire.links import (
    KEYS,
    ROOT,
    Link,
    codec,
    is_lost,
    message,
    receive,
    speeds,
    until,
)

HERE = "127.0.0.1"
NOBODY = 65_534


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temp folder of our own, with a short path, in which nothing may be left."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)
        assert list(Path(folder).iterdir()) == []


@pytest.fixture
def local_link() -> Iterator[Link]:
    made = Link(is_local=True)
    yield made
    made.close()


def path_of(receiver: Receiver) -> Path:
    assert receiver.endpoint.startswith("ipc://")
    return Path(receiver.endpoint.removeprefix("ipc://"))


# -- the socket ----------------------------------------------------------------------------------


def test_the_socket_lies_in_a_fresh_folder_that_only_we_may_enter(
    temp: Path, local_link: Link
) -> None:
    paths = [path_of(local_link.receiver()) for _ in range(2)]
    assert paths[0].parent != paths[1].parent
    for path in paths:
        assert path.parent.parent == temp
        assert path.is_socket()
        found = path.parent.stat()
        assert stat.S_IMODE(found.st_mode) == 0o700
        assert found.st_uid == os.geteuid()


ABANDONS = """
from slackwater.actors.wire import local_sockets
print(local_sockets.private_path())
"""


def test_the_socket_of_a_process_that_is_gone_is_removed(temp: Path) -> None:
    words = [sys.executable, "-c", ABANDONS]
    environment = {**os.environ, "TMPDIR": str(temp)}
    done = subprocess.run(  # noqa: S603  (ours)
        words, env=environment, check=True, capture_output=True, text=True
    )
    abandoned, own = Path(done.stdout.strip()), Path(local_sockets.private_path() or "")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(abandoned))
    local_sockets.remove_abandoned()
    assert list(temp.iterdir()) == [own.parent]
    local_sockets.remove(str(own))
    assert not own.parent.exists()


ANOTHER_USER = """
import errno, os, socket, sys
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as stranger:
    sys.exit(stranger.connect_ex(sys.argv[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_does_not_get_in(local_link: Link) -> None:
    path = path_of(local_link.receiver())
    command = [sys.executable, "-c", ANOTHER_USER, str(path), str(NOBODY)]
    tried = subprocess.run(command, check=False)  # noqa: S603  (ours)
    assert tried.returncode == 13  # EACCES


def test_the_connection_lives_on_without_its_path(temp: Path, local_link: Link) -> None:
    receiver = local_link.receiver()
    sender = local_link.sender(receiver)
    assert list(temp.iterdir()) == []
    sender.send(message(1), 0)
    assert speeds(receive(receiver, 1)) == [1]
    receiver.grant(5)
    until(lambda: sender.poll() == [5], [sender])


def test_a_second_peer_is_refused_even_while_the_path_is_there(local_link: Link) -> None:
    receiver = local_link.receiver()
    first = local_link.raw(receiver, None)  # it leaves the path alone
    first.send(codec().encode_hello())
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    first.close(linger=0)
    until(lambda: is_lost(receiver), [receiver])
    assert path_of(receiver).exists()
    late = local_link.sender(receiver)
    until(lambda: is_lost(late), [late])
    assert receiver.receive(0) == []


def test_a_receiver_that_nobody_came_to_leaves_nothing(temp: Path, local_link: Link) -> None:
    closed, withdrawn, forgotten = (local_link.receiver() for _ in range(3))
    assert len(list(temp.iterdir())) == 3
    closed.close(linger_s=0)
    withdrawn.unlink()
    withdrawn.unlink()
    assert [folder / "channel" for folder in temp.iterdir()] == [path_of(forgotten)]
    late = local_link.sender(withdrawn)
    until(lambda: is_lost(late), [late])


FORGETFUL = """
import zmq
from slackwater.actors.wire.channel import Receiver
from tests.actors.wire.links import KEYS, codec
receiver = Receiver(keys=KEYS, codec=codec(), context=zmq.Context(), is_local=True)
print(receiver.endpoint)
raise SystemExit(3)
"""


def test_a_process_that_ends_leaves_nothing(temp: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(temp)}
    command = [sys.executable, "-W", "ignore", "-c", FORGETFUL]
    ended = subprocess.run(  # noqa: S603  (ours)
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 3, ended.stderr
    assert ended.stdout.startswith(f"ipc://{temp}/sw-")


def test_a_sender_removes_no_file_that_is_not_its_socket(local_link: Link, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    sender = Sender(f"ipc://{precious}", keys=KEYS, codec=codec(), context=local_link.context)
    assert is_lost(sender)
    sender.close()
    assert precious.read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("name", ["x" * 100, "missing"], ids=["too long", "missing"])
def test_a_temp_folder_that_takes_no_socket_means_tcp_with_keys(
    temp: Path, local_link: Link, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = temp / name
    if name != "missing":
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    receiver = local_link.receiver()
    assert receiver.endpoint.startswith("tcp://127.0.0.1:")
    assert receiver.socket.getsockopt(zmq.MECHANISM) == zmq.CURVE
    sender = local_link.sender(receiver)
    sender.send(message(1), 0)
    assert speeds(receive(receiver, 1)) == [1]
    if name != "missing":
        folder.rmdir()  # and it is empty


# -- the host ------------------------------------------------------------------------------------


def identity_in(*command: str) -> str:
    """Return what a process that is started by this command takes for its host."""
    script = (
        "from slackwater.actors.wire.local_sockets import host_identity; "
        f"print(host_identity({HERE!r}))"
    )
    run = [*command, sys.executable, "-c", script]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode and command:
        pytest.skip(f"no namespaces can be made here (root may): {done.stderr.strip()}")
    return done.stdout.strip()


def test_two_processes_of_one_host_agree_on_it() -> None:
    if sys.platform != "linux":
        assert host_identity(HERE) is None
    else:
        assert host_identity(HERE) == identity_in()
        assert host_identity(HERE) != host_identity("127.0.0.2")


@pytest.mark.parametrize("namespace", ["--net", "--mount"])
def test_another_namespace_is_another_host(namespace: str) -> None:
    try:
        found = identity_in("unshare", namespace)
    except FileNotFoundError:
        pytest.skip("no unshare(1) here")
    assert found not in ("None", host_identity(HERE))


def test_a_host_that_cannot_be_known_is_nobodys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(boot, "_BOOT", tmp_path / "none")
    assert host_identity(HERE) is None


# -- a slot chooses ------------------------------------------------------------------------------


def sink_slot() -> SlotHost:
    flow = Dataflow("numbers")
    events = table(pa.table({"ts": pa.array([1, 2], pa.timestamp("ns"))}))
    flow.source("numbers", events, event_time="ts").sink("out", collect_sink())
    stages = plan_stages(flow.graph)
    out = [stage for stage in stages if stage.name == "out"]
    part = SlotPlan(name="node-2", node="node-2", stages=tuple(out))
    return SlotHost(part, keys=KEYS, host=HERE)


@pytest.mark.skipif(sys.platform != "linux", reason="hosts are told apart on Linux only")
@pytest.mark.parametrize(
    ("source_host", "scheme"),
    [(host_identity(HERE), "ipc"), ("elsewhere", "tcp"), (None, "tcp")],
    ids=["same host", "another host", "unknown host"],
)
def test_a_slot_listens_on_a_unix_socket_for_senders_on_its_host_only(
    temp: Path, source_host: str | None, scheme: str
) -> None:
    slot = sink_slot()
    (endpoint,) = slot.bind({"numbers": source_host, "out": host_identity(HERE)}).values()
    assert endpoint.startswith(f"{scheme}://")
    slot.stop()  # before its sender came
    assert list(temp.iterdir()) == []
    release(slot)


def test_a_slot_that_is_stopped_before_it_listens_leaves_nothing(temp: Path) -> None:
    slot = sink_slot()
    slot.stop()
    slot.bind({"numbers": host_identity(HERE), "out": host_identity(HERE)})
    assert list(temp.iterdir()) == []
    release(slot)


def release(slot: SlotHost) -> None:
    """End what otherwise ends with the slot's process."""
    for receiver in slot._receivers.values():
        receiver.close(linger_s=0)
    slot._waker.close()
    slot._context.term()


LEAVES = """
import threading
from tests.actors.wire.test_channel_local import HERE, sink_slot
from slackwater.actors.wire.local_sockets import host_identity
from tests.support.waiting import until

here = host_identity(HERE)
for _ in range(40):
    slot = sink_slot()
    slot.bind({"numbers": here, "out": here})
    slot.leave()
names = lambda: {thread.name for thread in threading.enumerate()}
until(lambda: "channel-keys" not in names(), within_s=10, what="threads of the slots to end")
"""


def test_slots_that_leave_their_process_neither_end_it_nor_stay_in_it() -> None:
    """libzmq ends a process in which a socket is closed while another thread waits at it."""
    words = [sys.executable, "-c", LEAVES]
    done = subprocess.run(  # noqa: S603 our own program
        words, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
