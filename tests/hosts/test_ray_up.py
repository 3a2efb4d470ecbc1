"""`ray up cluster.yaml`, for real: a head and two workers, named, closed to who has no token."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml  # type: ignore[import-untyped]

from tests.hosts.conftest import ROOT, RayHosts

pytestmark = [pytest.mark.hosts, pytest.mark.ray]

STRANGER = "import ray, sys; ray.init(sys.argv[1]); print('got in', ray.nodes())"
CHILD = """
import json, ray, socket, subprocess, sys
ray.init(sys.argv[1], logging_level="error", log_to_driver=False)
@ray.remote(num_cpus=0)
def what_there_is():
    import os, slackwater
    java = subprocess.run(["java", "-version"], capture_output=True, text=True)
    return {"host": socket.gethostname(), "slackwater": slackwater.__file__,
            "java": java.stderr, "options": os.environ.get("JDK_JAVA_OPTIONS", "")}
names = sys.argv[2:]
print(json.dumps(ray.get([what_there_is.options(resources={n: 0.001}).remote() for n in names])))
"""


def test_ray_up_brings_up_a_head_and_two_workers_by_name(ray_hosts: RayHosts) -> None:
    nodes = ray_hosts.nodes(3)
    assert {node["NodeName"]: node["NodeManagerAddress"] for node in nodes} == {
        host.name: host.ip for host in ray_hosts.hosts.hosts
    }
    heads = [node["NodeName"] for node in nodes if "node:__internal_head__" in node["Resources"]]
    assert heads == [ray_hosts.head.name]
    for node in nodes:
        assert node["Resources"][node["NodeName"]] == node["Resources"]["CPU"]


def test_each_node_has_the_project_installed_and_a_java(ray_hosts: RayHosts) -> None:
    names = [host.name for host in ray_hosts.hosts.hosts]
    done = ray_hosts.outside.run(
        ["python3", "-c", CHILD, ray_hosts.client_address, *names],
        timeout=90,
        env=ray_hosts.environment,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert [each["host"] for each in found] == names
    for each in found:
        assert "site-packages" in each["slackwater"], "the checkout, and not the wheel"
        assert 'version "17' in each["java"]
        assert "--add-opens" in each["options"]


def test_a_driver_without_the_token_gets_nothing(ray_hosts: RayHosts) -> None:
    outside = ray_hosts.outside
    pipe = subprocess.PIPE
    strangers = {
        (address, bool(more)): outside.popen(
            ["timeout", limit_s, "python3", "-c", STRANGER, address],
            env={"RAY_AUTH_TOKEN_PATH": "/dev/null", **more},
            stdout=pipe,
            stderr=pipe,
        )
        # Ray's client says nothing for 30 s; a driver is told soon, once it has loaded Ray.
        for address, limit_s in ((ray_hosts.address, "80"), (ray_hosts.client_address, "12"))
        for more in ({}, {**ray_hosts.environment, "RAY_AUTH_TOKEN": "0" * 64})
    }
    for (address, _), stranger in strangers.items():
        with stranger:
            out, err = stranger.communicate(timeout=90)
        assert stranger.returncode != 0
        assert "got in" not in out, err
        if address == ray_hosts.address:
            assert "InvalidAuthToken" in err


def test_a_job_is_submitted_over_http_with_the_token_only(ray_hosts: RayHosts) -> None:
    submit = ["ray", "job", "submit", "--address", ray_hosts.dashboard, "--", "echo", "4" * 9]
    accepted = ray_hosts.outside.run(submit, timeout=90, env=ray_hosts.environment)
    assert accepted.returncode == 0, accepted.stderr
    assert "4" * 9 in accepted.stdout.replace(" ".join(submit), "")
    wrong = {**ray_hosts.environment, "RAY_AUTH_TOKEN": "0" * 64}
    refused = ray_hosts.outside.run(submit, timeout=90, env=wrong)
    assert refused.returncode != 0
    assert "succeeded" not in refused.stdout


def test_no_port_answers_http_without_the_token(ray_hosts: RayHosts) -> None:
    """Every listening port but sshd's; gRPC ports do not speak HTTP/1."""
    get = """
import socket, sys
for port in sys.argv[2:]:
    for path in ("/metrics", "/api/jobs/", "/api/version", "/logs", "/api/local_raylet_healthz"):
        try:
            sock = socket.create_connection((sys.argv[1], int(port)), timeout=5)
        except ConnectionRefusedError:  # an idle worker, gone since we looked
            break
        with sock:
            sock.sendall(f"GET {path} HTTP/1.0\\r\\n\\r\\n".encode())
            try:
                answer = sock.recv(12)
            except OSError:
                answer = b""
        if answer.startswith(b"HTTP/1.1 2"):
            print(port, path, answer)
"""
    for host in ray_hosts.hosts.hosts:
        listening = host.run(["ss", "-ltnH"]).stdout.splitlines()
        where = [line.split()[3].rpartition(":") for line in listening]
        ports = [port for ip, _, port in where if "127.0.0.1" not in ip and port != "22"]
        assert ports
        found = ray_hosts.outside.run(["python3", "-c", get, host.ip, *ports])
        assert found.returncode == 0, found.stderr
        assert found.stdout == "", f"{host.name} answers strangers: {found.stdout}"


def test_the_file_is_one_that_rays_launcher_takes() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config  # noqa: PLC0415

    written = yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))
    config = prepare_config(written)
    validate_config(config)
    assert config["max_workers"] == len(written["provider"]["worker_ips"])
