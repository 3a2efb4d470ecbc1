"""A process that has no node: through Ray's client proxy it submits, watches, stops and fetches."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import slackwater as sw
from tests.support.processes import LIMIT_S, below, driver, environment_of
from tests.support.waiting import until

pytestmark = pytest.mark.ray

GONE_S = 10.0
TRIES = 5
PORTS = range(20_000, 32_768)  # the system gives none of these to whoever asks for any


@pytest.fixture(scope="module")
def proxy(cluster: sw.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of what a Ray client proxy starts for each client that calls it."""
    said = tmp_path_factory.mktemp("proxy") / "said"
    with contextlib.ExitStack() as stack:
        for _ in range(TRIES):  # somebody may take the port before it does
            port = free_port()
            server = stack.enter_context(serving(cluster, port, said))
            until(
                lambda: serves(server, port) or server.poll() is not None,  # noqa: B023 this turn's
                within_s=LIMIT_S,
                what="the client proxy",
            )
            if server.poll() is None:
                break
        assert server.poll() is None, said.read_text(errors="replace")
        yield f"ray://127.0.0.1:{port}"


@contextlib.contextmanager
def serving(cluster: sw.Cluster, port: int, said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a client proxy at this port; what it says goes into a file."""
    words = [f"--address={cluster._ray.address}", "--host=127.0.0.1", f"--port={port}"]
    with (
        said.open("wb") as log,
        subprocess.Popen(  # noqa: S603 Ray's own program
            [sys.executable, "-m", "ray.util.client.server", *words, "--mode=specific-server"],
            env=environment_of(cluster),
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        try:
            yield server
        except AssertionError as problem:  # it does not listen, and has not ended
            raise AssertionError(f"{problem}: {said.read_text(errors='replace')}") from problem
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                ours = [psutil.Process(server.pid), *below(server.pid)]
                for process in ours:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
                psutil.wait_procs(ours, timeout=GONE_S)


def serves(server: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it is this process that listens there."""
    with contextlib.suppress(psutil.Error):
        for one in psutil.Process(server.pid).net_connections("inet"):
            if one.status == psutil.CONN_LISTEN and one.laddr.port == port:
                return True
    return False


def free_port() -> int:
    """A port at which nobody listens now."""
    port = random.SystemRandom().choice(PORTS)
    while listens(port):
        port = random.SystemRandom().choice(PORTS)
    return port


def listens(port: int) -> bool:
    with socket.socket() as call:
        return call.connect_ex(("127.0.0.1", port)) == 0


OUTSIDE = """
import sys
import slackwater as sw
from tests.support.flows import ticking

def double(rows):
    print("from outside:", rows.num_rows, flush=True)

def refused(what, *arguments, **options):
    try:
        what(*arguments, **options)
    except sw.SlackwaterError as problem:
        print(type(problem).__name__, str(problem).splitlines()[0])

flow, numbers = ticking("short", seconds=0.5)
numbers.sink("calls", sw.callback_sink(double))
numbers.sink("kept", sw.collect_sink())
endless, more = ticking("long")
more.sink("calls", sw.callback_sink(double))
nowhere, most = ticking("nowhere")
most.sink("lines", sw.jsonl_sink("/proc/nowhere/out.jsonl"))

with sw.Cluster.connect(sys.argv[1]) as cluster:
    print(cluster.nodes)
    stays = cluster.submit(endless, placement={"*": "node-3"})
    job = cluster.submit(flow)
    print(job.wait(timeout=60).ledger.is_balanced, job.result("kept").num_rows)
    print(any("from outside" in line for part in job.logs() for line in part.lines))
    print([(one.flow, one.status) for one in cluster.jobs()[:2]])
    refused(cluster.submit, flow, detach=False)
    refused(cluster.submit, nowhere)
    refused(cluster.submit, flow, placement={"*": "node-9"})
    refused(cluster.spark)
"""


def test_a_process_without_a_node_submits_watches_and_fetches(
    cluster: sw.Cluster, proxy: str
) -> None:
    done = driver(cluster, OUTSIDE, proxy)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[:4] == [
        "['node-1', 'node-2', 'node-3']",
        "True 50",
        "True",
        "[('short', 'done'), ('long', 'running')]",
    ]
    assert said[4].startswith("ClusterError a job cannot be attached to a process outside")
    assert said[5].startswith("SinkError sink 'lines' could not write /proc/nowhere/out.jsonl")
    assert said[6].startswith("FlowError placement names node 'node-9', which is not there")
    assert said[7].startswith("ClusterError Spark does not start through a client proxy")
    stays = cluster.job("long")
    assert stays.status == "running"
    stays.stop()
    assert [job.flow for job in cluster.jobs()][:2] == ["short", "long"]  # newest first


def test_a_wrong_token_is_refused_by_name(cluster: sw.Cluster, proxy: str) -> None:
    code = (
        "import os, sys, slackwater as sw\n"
        "os.environ['RAY_AUTH_TOKEN'] = 'f' * 64\n"
        "os.environ.pop('RAY_AUTH_TOKEN_PATH')\n"
        "sw.Cluster.connect(sys.argv[1])\n"
    )
    done = driver(cluster, code, proxy)
    assert done.returncode == 1
    assert f"the Ray cluster at {proxy} refuses our token" in done.stderr
