"""Checks of this machine, for `Cluster.local` and Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from slackwater.actors.nodes.host_facts import host_facts
from slackwater.actors.nodes.versions import own_versions
from slackwater.doctor.findings import Finding, judge_machine, ok
from slackwater.doctor.own_token import HERE
from slackwater.runtime.plurals import count_of

__all__ = ["examine_here"]


def examine_here(facts: Mapping[str, Any] | None = None) -> list[Finding]:
    """Return the findings about this machine.

    Args:
        facts: facts of `host_facts`; None if they are to be collected.
    """
    facts = host_facts() if facts is None else facts
    versions = ", ".join(f"{name} {version}" for name, version in own_versions().items())
    findings = [
        ok(HERE, versions),
        *judge_machine(HERE, facts, is_running=True),
        ok(HERE, f"{count_of(len(os.sched_getaffinity(0)), 'CPU')}, one each for as many slots"),
    ]
    if facts["ports"].get("6379") == "ray":
        findings.append(
            ok(HERE, "a Ray head runs here: `slackwater doctor --address auto` looks at its nodes")
        )
    return findings
