"""Real Ray nodes: what runs, who gets in, and that nothing outlives the driver."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from textwrap import dedent

import numpy as np
import psutil
import pytest
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.nodes import connecting
from slackwater.actors.nodes.connecting import check_cluster, settings_for
from slackwater.actors.nodes.local import LocalNodes
from slackwater.actors.nodes.local_supervisor import AGENTS_SWITCH
from slackwater.actors.nodes.placement import check_room, list_nodes, missing_cpus
from slackwater.actors.nodes.ray_nodes import RayNodes
from slackwater.runtime.errors import ClusterError, SettingError
from tests.support.processes import below, command_lines
from tests.support.waiting import until

pytestmark = pytest.mark.ray

DRIVER = Path(__file__).with_name("dying_driver.py")
GONE_S = 10.0  # nodes are down in 0.1 s on an idle machine


def tree(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *below(pid)]


def keeper_of(nodes: RayNodes) -> int:
    assert nodes._local is not None
    assert nodes._local._supervisor is not None
    return nodes._local._supervisor.pid


@pytest.fixture(scope="module")
def steps() -> list[str]:
    return []


@pytest.fixture(scope="module")
def nodes(steps: list[str]) -> Iterator[RayNodes]:
    with RayNodes.local(3, progress=steps.append) as opened:
        yield opened


def test_local_nodes_have_names_and_logical_cpus(nodes: RayNodes, steps: list[str]) -> None:
    assert [node.name for node in nodes.nodes] == ["node-1", "node-2", "node-3"]
    assert [node.cpus for node in nodes.nodes] == [4.0] * 3
    assert [node.is_head for node in nodes.nodes] == [True, False, False]
    assert nodes.is_simulated
    assert "share its clock" in nodes.notes[0]
    assert steps[-1] == "starting node-3 of 3"


@ray.remote(num_cpus=1)
class Where:
    """Holds a CPU, and knows where."""

    def node_id(self) -> str:
        return str(ray.get_runtime_context().get_node_id())


def test_room_is_what_no_actor_holds_and_comes_back_when_it_ends(nodes: RayNodes) -> None:
    last = nodes.nodes[2].node_id
    where = NodeAffinitySchedulingStrategy(last, soft=False)
    actor = Where.options(scheduling_strategy=where).remote()  # type: ignore[attr-defined]
    assert ray.get(actor.node_id.remote(), timeout=60) == last
    four = {f"slot-{n}": last for n in range(4)}
    until(lambda: missing_cpus(four, list_nodes()), within_s=GONE_S, what="a CPU to be held")
    said = r"4 slots of 1 CPU do not fit: node-3 lacks 1 of 4 CPUs \(3 of its 4 are free\); stop"
    with pytest.raises(ClusterError, match=said):
        check_room(four, within_s=0)
    ray.kill(actor)
    check_room(four)


def test_local_nodes_listen_on_the_loopback_alone(nodes: RayNodes) -> None:
    listening = []
    for process in tree(keeper_of(nodes)):
        with suppress(psutil.NoSuchProcess):  # an idle worker may end while we look
            listening += [
                (process.pid, socket_.laddr)
                for socket_ in process.net_connections("inet")
                if socket_.status == psutil.CONN_LISTEN
            ]
    assert listening
    outside = [where for where in listening if where[1].ip not in ("127.0.0.1", "::ffff:127.0.0.1")]
    assert not outside


def test_three_idle_nodes_need_under_300_mb_and_no_dashboard(nodes: RayNodes) -> None:
    def ours() -> dict[psutil.Process, str]:
        workers = ("ray::IDLE", "ray::Where", "--serve=")  # of the test before this one
        lines = command_lines(tree(keeper_of(nodes)))
        return {p: line for p, line in lines.items() if not any(w in line for w in workers)}

    # The supervisor, gcs_server, and per node a raylet and two agents; a worker that starts is not
    # known as one yet.
    idle = until(
        lambda: found if len(found := ours()) == 11 else None, within_s=GONE_S, what="11 processes"
    )
    assert not [line for line in idle.values() if "dashboard/" in line or "monitor.py" in line]
    assert sum(process.memory_info().rss for process in idle) < 300 * 2**20


@ray.remote(num_cpus=0)
def greeting() -> tuple[str, str | None]:
    """Where it runs, and one of its environment."""
    return str(ray.get_runtime_context().get_node_id()), os.environ.get("GREETING")


def test_an_agent_that_nobody_needed_becomes_rays_own_once_a_runtime_env_is_asked_for(
    nodes: RayNodes,
) -> None:
    def real_agents() -> int:
        return sum("EnvAgent" in line for line in command_lines(tree(keeper_of(nodes))).values())

    assert real_agents() == 0
    last = nodes.nodes[2].node_id
    there = NodeAffinitySchedulingStrategy(last, soft=False)
    for said in ("hello", "again"):  # the call that wakes it, and one that finds it awake
        task = greeting.options(
            scheduling_strategy=there, runtime_env={"env_vars": {"GREETING": said}}
        )
        assert ray.get(task.remote(), timeout=60) == (last, said)
    assert real_agents() == 1


def test_a_switch_gives_nodes_rays_own_agents() -> None:
    program = """
        import psutil, ray
        from slackwater.actors.nodes.ray_nodes import RayNodes
        with RayNodes.local(1) as nodes:
            assert ray.get(ray.remote(lambda: 7).remote(), timeout=60) == 7
            found = psutil.Process(nodes._local._supervisor.pid).children(recursive=True)
            print(*[" ".join(one.cmdline()) for one in found], sep="\\n")
    """
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", dedent(program)],
        env={**os.environ, AGENTS_SWITCH: "ray"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"(stub|late)_agent\.py|warm_workers\.py", done.stdout)
    assert len(re.findall("agent", done.stdout)) >= 2, done.stdout


@ray.remote(num_cpus=0)
class Fork:
    """Knows its parent and the variables of its process, and draws a number."""

    def facts(self) -> tuple[int, str, float]:
        return os.getppid(), os.environ["RAY_RAYLET_PID"], float(np.random.random())


def test_workers_of_a_node_are_forks_of_one_process_and_draw_other_numbers(nodes: RayNodes) -> None:
    def made(count: int) -> list[tuple[int, str, float]]:
        here = NodeAffinitySchedulingStrategy(nodes.nodes[1].node_id, soft=False)
        actors = [Fork.options(scheduling_strategy=here).remote() for _ in range(count)]  # type: ignore[attr-defined]
        try:
            return list(ray.get([actor.facts.remote() for actor in actors], timeout=60))
        finally:
            for actor in actors:
                ray.kill(actor)

    parents, raylets, numbers = map(set, zip(*made(3), strict=True))
    assert (len(parents), len(raylets), len(numbers)) == (1, 1, 3)
    server = psutil.Process(*parents)
    assert {str(server.ppid())} == raylets
    server.kill()  # what it would have forked loads its modules itself
    psutil.wait_procs([server], timeout=GONE_S)
    ((parent, raylet, _),) = made(1)
    assert {str(parent)} == {raylet} == raylets


def test_the_token_is_private_and_on_no_command_line(nodes: RayNodes) -> None:
    path = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    token = path.read_text()
    assert len(token) == 64
    for line in command_lines(tree(keeper_of(nodes))).values():
        assert token not in line


@pytest.mark.parametrize(
    ("settings", "token", "claim"),
    [
        ({"RAY_AUTH_MODE": "disabled"}, None, "refuses our token"),
        ({}, "f" * 64, "refuses our token"),
        ({}, None, "no token for the Ray cluster"),
    ],
    ids=["without", "wrong", "missing file"],
)
def test_a_client_without_the_token_is_refused(
    nodes: RayNodes, tmp_path: Path, settings: dict[str, str], token: str | None, claim: str
) -> None:
    path = tmp_path / "token"
    if token is not None:
        path.write_text(token)
    if not settings:
        settings = {"RAY_AUTH_TOKEN_PATH": str(path)}
    with pytest.raises(ClusterError, match=claim) as caught:
        check_cluster(nodes.address, settings)
    assert "RAY_AUTH_TOKEN_PATH=" in str(caught.value)


def test_a_client_with_the_token_is_let_in(nodes: RayNodes) -> None:
    assert check_cluster(nodes.address, settings_for(nodes.address)) == []


def test_a_second_process_with_the_token_connects(nodes: RayNodes) -> None:
    program = (
        "import sys; from slackwater.actors.nodes.ray_nodes import RayNodes\n"
        "with RayNodes.connect(sys.argv[1]) as n:\n"
        "    print(n.is_simulated, *[node.name for node in n.nodes])"
    )
    done = subprocess.run(  # noqa: S603 the program above
        [sys.executable, "-c", program, nodes.address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["False", "node-1", "node-2", "node-3"]


def test_a_driver_needs_a_node_on_its_own_host(
    nodes: RayNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting._services, "find_node_ids", set)
    with pytest.raises(ClusterError, match="has no node on this host"):
        check_cluster(nodes.address, settings_for(nodes.address))


@pytest.mark.parametrize("opening", [RayNodes.local, RayNodes.connect])
def test_one_process_drives_one_cluster(nodes: RayNodes, opening: Callable[[], RayNodes]) -> None:
    with pytest.raises(ClusterError, match="already connected to Ray"):
        opening()


def test_local_nodes_refuse_settings_out_of_range() -> None:
    with pytest.raises(SettingError, match="count=0, but it must be at least 1"):
        LocalNodes(0)
    with pytest.raises(SettingError, match="cpus_per_node=0, but it must be at least 1"):
        LocalNodes(1, cpus_per_node=0)
    with pytest.raises(SettingError, match="cores=0, but it must be at least 1"):
        LocalNodes(1, cores=0)
    with pytest.raises(SettingError, match="cpus_per_node=2, but it must be at least 4"):
        LocalNodes(1, cores=4, cpus_per_node=2)
    with pytest.raises(SettingError, match="object_store_mb=10, but it must be at least 75"):
        LocalNodes(1, object_store_mb=10)


def test_a_failed_start_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slackwater.actors.nodes.local.START_LIMIT_S", 0.001)
    before = set(psutil.Process().children())
    with pytest.raises(ClusterError, match="did not start the local nodes"):
        LocalNodes(1)
    assert set(psutil.Process().children()) <= before


class Victim:
    """A driver in a session of its own, to be ended in some way."""

    def __init__(self, way: str) -> None:
        self.supervisor_pid = 0  # once it is ready
        self.process = subprocess.Popen(  # noqa: S603 our own file
            [sys.executable, str(DRIVER), way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, word: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line
        raise AssertionError(f"no {word!r}; {self.process.communicate()[1]}")

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


WAYS = ["exception", "exit without closing"]
SIGNALS = [signal.SIGINT, signal.SIGKILL]


@contextmanager
def side_by_side(ways: Iterable[str]) -> Iterator[list[Victim]]:
    """Victims that are ready, in the time that one takes."""
    with ExitStack() as all_of_them:
        victims = [all_of_them.enter_context(Victim(way)) for way in ways]
        for victim in victims:
            victim.supervisor_pid = int(victim.wait_for("ready").split()[1])
        yield victims


@pytest.fixture(scope="module")
def leaving() -> Iterator[dict[str, Victim]]:
    with side_by_side(WAYS) as victims:
        yield dict(zip(WAYS, victims, strict=True))


@pytest.fixture(scope="module")
def struck() -> Iterator[dict[signal.Signals | None, Victim]]:
    """One for each signal, and one whose supervisor gets it."""
    struck = [*SIGNALS, None]
    with side_by_side("wait" for _ in struck) as victims:
        yield dict(zip(struck, victims, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outlives_a_driver_that_ends_by_itself(
    leaving: dict[str, Victim], way: str
) -> None:
    victim = leaving[way]
    processes = tree(victim.supervisor_pid)
    folder = folder_of(processes)
    _, errors = victim.process.communicate("\n", timeout=30)
    assert psutil.wait_procs(processes, timeout=GONE_S)[1] == []
    assert not folder.exists()
    assert ("the driver's own fault" in errors) if way == "exception" else (errors == "")


@pytest.mark.parametrize("signal_", SIGNALS)
def test_nothing_outlives_a_driver_that_gets_a_signal(
    struck: dict[signal.Signals | None, Victim], signal_: signal.Signals
) -> None:
    victim = struck[signal_]
    # The supervisor, gcs_server, raylet, two agents, the server of workers, the actor, its child.
    processes = until(
        lambda: found if len(found := tree(victim.supervisor_pid)) == 8 else None,
        within_s=GONE_S,
        what="8 processes",
    )
    folder = folder_of(processes)
    assert victim.process.stdin is not None
    victim.process.stdin.write("\n")
    victim.process.stdin.flush()
    os.killpg(victim.process.pid, signal_)  # the whole group, as a terminal does
    assert psutil.wait_procs(processes, timeout=GONE_S)[1] == []
    assert not folder.exists()


def test_nothing_outlives_a_driver_killed_while_nodes_start() -> None:
    with Victim("exit") as victim:
        victim.wait_for("starting")  # loading Ray
        victim.wait_for("starting")  # node-1
        processes = below(victim.process.pid)
        folder = folder_of(processes)
        victim.process.kill()
        assert psutil.wait_procs(processes, timeout=GONE_S)[1] == []
        assert not folder.exists()


def test_nodes_die_with_their_keeper(struck: dict[signal.Signals | None, Victim]) -> None:
    victim = struck[None]
    supervisor, *others = tree(victim.supervisor_pid)
    folder = folder_of([supervisor])
    # A child that a user's actor detached is nobody's then.
    lines = command_lines(others)
    slow = [p for p, line in lines.items() if "sleep(600)" in line]
    supervisor.kill()
    try:
        rest = [process for process in lines if process not in slow]
        assert len(rest) == 6  # gcs_server, raylet, two agents, server of workers, actor
        assert psutil.wait_procs(rest, timeout=GONE_S)[1] == []
    finally:
        for process in slow:
            if process.is_running():
                process.kill()
        victim.process.kill()
        shutil.rmtree(folder)


def folder_of(processes: list[psutil.Process]) -> Path:
    """The private folder, from the plan on the supervisor's command line."""
    lines = command_lines(processes)
    supervisor = next(process for process, line in lines.items() if "local_supervisor.py" in line)
    return Path(json.loads(supervisor.cmdline()[-1])["folder"])
