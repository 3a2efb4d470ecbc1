"""Somebody in the network, without token or keys, at every port while a job runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from examples.city import City, generate
from tests.hosts.conftest import ROOT, RayHosts
from tests.support.flows import offline_congestion, sorted_rows

pytestmark = [pytest.mark.hosts, pytest.mark.ray]

KNOCKS = 20  # at each port
JAMS = "/tmp/strangers.parquet"  # noqa: S108 of a host of its own
OVER = "/tmp/strangers-are-gone"  # noqa: S108 of hosts of their own
CITY = City(seconds=150)  # longer than any knocking, which ends it
FLOW = f"""
from ray import cloudpickle
from examples import city_congestion
from examples.city import City
from tests.support import endless, readers
for one in (endless, readers):  # the hosts have the wheel, and no tests
    cloudpickle.register_pickle_by_value(one)
inputs = city_congestion.carried({CITY!r})
told = [endless.ToldInput(one, {OVER!r}) for one in inputs]
flow = city_congestion.build(*told, speed=1.0)
"""
STRANGER = """
import contextlib, faulthandler, os, socket, sys, zmq
faulthandler.dump_traceback_later(60, exit=True)  # says where it stood
context = zmq.Context()
for place in sys.argv[2:]:
    host, port = place.split()
    for knock in range(int(sys.argv[1])):
        with socket.create_connection((host, int(port)), timeout=5) as garbage:
            with contextlib.suppress(ConnectionError):  # hung up on: the job has its sender
                garbage.sendall(os.urandom(200))
    plain = context.socket(zmq.PAIR)  # ZeroMQ in the clear, which no receiver takes
    plain.linger = 0
    plain.connect(f"tcp://{host}:{port}")
    if plain.poll(300, zmq.POLLOUT):
        with contextlib.suppress(zmq.Again):  # the greeting came, and libzmq has given up
            plain.send(b"SLKW", zmq.NOBLOCK)
    assert plain.poll(300) == 0, "an answer"
    plain.close()
context.term()
"""
OWNER = """
import json, sys
import pyarrow.parquet as pq
import slackwater as sw
with sw.Cluster.connect(sys.argv[1]) as cluster:
    job = cluster.job(sys.argv[2])
    report = job.wait(timeout=90)
    pq.write_table(job.result("jams"), sys.argv[3])
    rows = {stage.name: stage.rows_in for stage in report.stages if stage.kind == "source"}
    said = {"refused": report.refused_peers, "balanced": report.ledger.is_balanced, "rows": rows}
    print(json.dumps(said))
"""


def test_strangers_at_every_port_of_a_job_get_nothing_in_and_are_counted(
    ray_hosts: RayHosts, tmp_path: Path
) -> None:
    outside, environment = ray_hosts.outside, dict(ray_hosts.environment)
    outside.path(f"{ROOT}/strangers_flow.py").write_text(FLOW, encoding="utf-8")
    words = "slackwater submit strangers_flow.py --address"
    submitted = outside.run(
        ["bash", "-c", f"cd {ROOT} && {words} {ray_hosts.client_address}"],
        timeout=90,
        env=environment,
    )
    assert submitted.returncode == 0, submitted.stderr
    places = []
    for host in ray_hosts.hosts.hosts:
        for line in host.run(["ss", "-ltnpH"]).stdout.splitlines():
            at = re.search(rf" {re.escape(host.ip)}:(\d+) ", line)
            if at is not None and "SlotActor" in line:
                places.append(f"{host.ip} {at[1]}")
    assert len(places) >= 2, "a channel from the buses, one from the loops"
    knocked = outside.run(["python3", "-c", STRANGER, str(KNOCKS), *places], timeout=90)
    assert knocked.returncode == 0, knocked.stderr
    for host in ray_hosts.hosts.hosts:
        host.path(OVER).touch()
    asked = [ray_hosts.client_address, submitted.stdout.strip(), JAMS]
    done = outside.run(["python3", "-c", OWNER, *asked], timeout=150, env=environment)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["balanced"]
    assert said["refused"] >= KNOCKS * len(places)
    buses, loops = (pq.read_table(path) for path in generate(CITY, tmp_path))
    read = said["rows"]
    offline = offline_congestion(buses[: read["buses"]], loops[: read["loops"]])
    assert offline
    assert sorted_rows(pq.read_table(outside.path(JAMS))) == offline
