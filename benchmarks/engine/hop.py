"""A batch there and back between two actors on two nodes: our channel, and a plain Ray actor call.

Ours: encode, ZeroMQ, decode; the same back; credit granted as slots do. On the channel that a job
would open between these nodes, which are on one host, and on the one it would open between hosts.
Ray: the quicker of a RecordBatch and a dict of NumPy arrays as the argument and the result of an
actor's method. All take turns within one run, so that noise on the machine hits them alike.

Then the same between two hosts of namespaces (`tests/hosts`), where root may make them: there a
job's channel is TCP with CURVE, and Ray's calls go over the same cable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.engine.hop_ends import BETWEEN_HOSTS, OURS, RAY, SIZES, HopEnds, summary
from benchmarks.frame import Claim, Options, Result, WrongResultError
from slackwater.actors.nodes.ray_nodes import RayNodes
from tests.hosts import Hosts, why_not
from tests.hosts.raylets import GCS_PORT, started

TIMES_QUICKER = 5
HOSTS_S = 300.0  # for all that is measured between them


def run(options: Options) -> Result:
    """Measure batches of 10 and of 1,000 rows, between local nodes and between hosts."""
    turns, trips = (4, 250) if options.quick else (10, 1_000)
    result = Result(
        f"{turns} turns of {trips:,} round trips, columns 5 × 4 bytes and 2 × 8",
        ["between", "rows", "way", "p50 ms", "p99 ms", "max ms", "p50 by turn, ms"],
    )
    with RayNodes.local(2) as nodes:
        ends = HopEnds(nodes.nodes)
        for rows in SIZES:
            took = ends.measure((OURS, BETWEEN_HOSTS, *RAY), rows=rows, turns=turns, trips=trips)
            _add(result, "local nodes", rows, {way: summary(took[way]) for way in took})
    result.notes += [
        "two local nodes are simulated on one machine: they share its clock and its cores",
        "ours is the channel of a job between these two nodes, "
        + ("a Unix socket in the clear: they are on one host" if ends.is_local else "TCP, CURVE"),
        "ours, between hosts, is TCP with CURVE, on local nodes over the loopback: no network, and "
        "no claim",
        "Ray's calls between nodes are not encrypted",
    ]
    add_hosts(result, turns=turns, trips=trips)
    return result


def add_hosts(result: Result, *, turns: int, trips: int) -> None:
    """Measure between two hosts as well, or say why not."""
    reason = why_not()
    if reason is not None:
        result.notes.append(f"left out, with its claims: between hosts, since {reason}")
        return
    found = _between_hosts(turns, trips)
    for rows in SIZES:
        _add(result, "hosts", rows, found[str(rows)])
    result.notes.append(
        "hosts are two network namespaces of one machine, joined by a bridge of the kernel: each "
        "with an address, files and Ray of its own; they share its cores"
    )


def _between_hosts(turns: int, trips: int) -> dict[str, dict[str, Any]]:
    """Return {rows: {way: its figures}}, measured from within one of two hosts."""
    with Hosts(2) as hosts, started(hosts, slots=1) as environment:
        head = hosts.hosts[0]
        task = {"address": f"{head.ip}:{GCS_PORT}", "turns": turns, "trips": trips}
        words = ["python3", "-m", "benchmarks.engine.hop_on_hosts", json.dumps(task)]
        done = head.run(words, timeout=HOSTS_S, env=environment)
        if done.returncode != 0:
            raise WrongResultError(f"hop between hosts: {done.stderr[-2_000:]}")
        figures: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return figures


def _add(result: Result, between: str, rows: int, ways: Mapping[str, dict[str, Any]]) -> None:
    for way, found in ways.items():
        least, most = found["p50_by_turn_ms"]
        p50, p99 = f"{found['p50_ms']:.3f}", f"{found['p99_ms']:.3f}"
        spread = f"{least:.3f}–{most:.3f}"
        result.rows.append([between, f"{rows:,}", way, p50, p99, found["max_ms"], spread])
        result.figures[f"{between}, {rows} rows, {way}"] = found
    ratio = times_quicker(ways)
    result.figures[f"{between}, {rows} rows, ratio of p50"] = ratio
    result.claims.append(
        Claim(
            f"{between}, {rows:,} rows: p50 of the quicker Ray call / p50 of ours",
            ratio,
            ">=",
            TIMES_QUICKER,
        )
    )


def times_quicker(ways: Mapping[str, dict[str, Any]]) -> float:
    """Return p50 of Ray's quicker way over that of a job's own channel."""
    quicker_ms: float = min(ways[way]["p50_ms"] for way in RAY)
    ours_ms: float = ways[OURS]["p50_ms"]
    return quicker_ms / ours_ms
