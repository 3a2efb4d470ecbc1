"""docs/clusters.md, typed in from top to bottom by somebody outside the cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from examples.city import generate
from examples.city_congestion import LIVE
from tests.hosts.conftest import CLUSTER_YAML, ROOT, RayHosts
from tests.support.flows import offline_congestion, sorted_rows

pytestmark = [pytest.mark.hosts, pytest.mark.ray]

PAGE = ROOT / "docs" / "clusters.md"
BLOCK = re.compile(r"^```(sh|python)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UP = "ray up cluster.yaml --yes\n"  # which the fixture did
JAMS = "/tmp/jams.parquet"  # noqa: S108 of a host of its own
KEEP = f"\nimport pyarrow.parquet as pq\npq.write_table(jams, {JAMS!r})\n"
WITHIN_S = 180.0
CLOCKS_MS = 20.0  # how unsure of its clocks a cluster on one busy machine may be


class Typist:
    """Somebody with a shell on `outside`, in the checkout, who exports variables as they go."""

    def __init__(self, cluster: RayHosts) -> None:
        self._outside = cluster.outside
        self._head_ip = cluster.head.ip
        self._exported = ""
        self._environment = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
        copied = f"cp {CLUSTER_YAML} {ROOT}/cluster.yaml"
        assert self.type(copied) == ""

    def type(self, script: str) -> str:
        script = script.replace("192.0.2.10", self._head_ip)
        done = self._outside.run(
            ["bash", "-euo", "pipefail", "-c", f"cd {ROOT}\n{self._exported}{script}"],
            timeout=WITHIN_S,
            env=self._environment,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        self._exported += "".join(re.findall(r"^export .*\n", script, re.MULTILINE))
        return done.stdout

    def save(self, name: str, text: str) -> None:
        text = text.replace("192.0.2.10", self._head_ip)
        path = self._outside.path(f"{ROOT}/{name}")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, path: str) -> Path:
        return self._outside.path(path)


def test_the_page_from_top_to_bottom(ray_hosts: RayHosts, tmp_path: Path) -> None:
    typist = Typist(ray_hosts)
    said = []
    for kind, name, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if name == "last":
            continue  # the other tests need the cluster
        if kind == "sh":
            said.append(typist.type(text.replace(UP, "")))
        elif name:
            typist.save(name, text)
        else:
            typist.save("typed.py", text + KEEP)
            said.append(typist.type("python3 typed.py\n"))
    whole = "\n".join(said)
    job = re.search(r"^city-congestion-[0-9a-f]{6}$", whole, re.MULTILINE)
    assert job is not None, whole
    assert re.search(r"congestion +host-2", whole), whole  # explain, and later the report
    assert f"{job[0]} " in whole  # the list of jobs
    assert "p99.9" in whole
    assert re.search(r"^done \{'p50_ms'", whole, re.MULTILINE), whole
    assert re.search(r"^tens-[0-9a-f]{6} +tens ", said[-1], re.MULTILINE), said[-1]
    error = re.search(r"'error_ms': ([\d.]+)", whole)
    assert error is not None
    assert 0 < float(error[1]) < CLOCKS_MS, whole
    paths = generate(LIVE, tmp_path)
    offline = offline_congestion(*(pq.read_table(path) for path in paths))
    assert sorted_rows(pq.read_table(typist.read(JAMS))) == offline
    assert f"{len(offline)} jams" in whole
