"""`slackwater doctor` asks a cluster that is up, with its token and with another."""

from __future__ import annotations

import re

import pytest

import slackwater as sw
from tests.support.processes import command_line, wait_for_free_cpus

pytestmark = pytest.mark.ray


def test_a_cluster_that_is_well_is_called_well(cluster: sw.Cluster) -> None:
    for node in cluster.nodes:
        wait_for_free_cpus(node, 4)  # jobs of other tests may just have ended
    done = command_line(cluster, "doctor", "--address", cluster._ray.address)
    said = done.stdout
    assert "ok       cluster        asks for a token, and takes ours" in said
    for node in ("node-1 (head)", "node-2       ", "node-3       "):
        assert f"{node}  python " in said
        own = node.partition(" ")[0]
        assert f"{node}  4 of 4 CPUs are free; it offers 1 slot ({own})" in said
        clock_line = re.search(re.escape(node) + r"  clock (\S+) ms .* ± (\S+) ms", said)
        assert clock_line is not None  # the same clock, in truth
        assert float(clock_line[1]) <= float(clock_line[2]) + 0.01
    assert "problem" not in said
    assert done.returncode == 0


def test_another_token_is_a_problem(cluster: sw.Cluster) -> None:
    wrong = {"RAY_AUTH_TOKEN": "another"}
    done = command_line(cluster, "doctor", "--address", cluster._ray.address, **wrong)
    assert done.returncode == 1
    assert "problem  cluster  the Ray cluster at" in done.stdout
    assert "refuses our token" in done.stdout
