"""The join on 1, 2 and 3 hosts of namespaces, each with Ray of its own, and with distance.

Hosts share this machine's cores: more of them do not make it faster here, they show what
distribution costs. The default placement puts the sources on the first hosts and join and sink
on the last: one host has no hop, two and three have one.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.engine.workload import join_tables, paced_tables, write
from benchmarks.frame import Claim, NotHereError, Options, Result, WrongResultError, check
from tests.hosts import Hosts, why_not
from tests.hosts.raylets import GCS_PORT, started

RATES = (1_000, 10_000, 50_000)
CABLES_MS = ((0.0, 1.0), (5.0, 20.0))
"""One way, of the cables of host-1 (the buses' source) and host-2 (the sensors'), run by run."""
LEAST_MS = 0.001  # of a cable, for its frames to go through our switch as those of the others do
LINKS = ("bus→join-1", "scats→join-1")
DELAY_RATE = 1_000
BULK_EVENTS, BULK_S = 1_000_000, 2_500
NEAR_MS, NEAR_PART = 0.3, 0.1  # "as what they are": within 0.3 ms or 10 %, whichever is more
VISIBLE = Path("/var/tmp")  # noqa: S108  every host sees it as it was when the host was made
RUN_S = 400.0

Paths = list[str]


def need_hosts() -> None:
    """Raise NotHereError where hosts cannot be made."""
    reason = why_not(delayed=True)
    if reason is not None:
        raise NotHereError(f"multinode makes hosts of namespaces, and cannot here: {reason}")


def run(options: Options) -> Result:
    """Measure latency and throughput by hosts and rate, then what a link's delay looks like."""
    need_hosts()
    counts: tuple[int, ...] = (1, 2, 3)
    rates: tuple[int, ...] = RATES
    cables: tuple[tuple[float, float], ...] = CABLES_MS
    seconds, far_seconds = 20, 10
    if options.quick:
        counts, rates, cables, seconds, far_seconds = (3,), (10_000,), ((0.0, 5.0),), 6, 4
    result = Result(
        f"{seconds} s on arrival at each rate; {', '.join(map(str, counts))} hosts",
        [
            "hosts",
            "cables ms",
            "events/s",
            "results",
            "p50 ms",
            "p99 ms",
            "max ms",
            "± ms",
            "links",
        ],
    )
    with tempfile.TemporaryDirectory(dir=VISIBLE) as name:
        folder = Path(name)
        folder.chmod(0o755)
        paced = {str(rate): _paced(folder, options, rate, seconds) for rate in rates}
        bulk = [] if options.quick else _bulk(folder, options)
        for count in counts:
            task = {"paced": paced, "seconds": seconds, "bulk": bulk}
            _add(result, count, None, _measured(count, None, task))
        paced = {str(DELAY_RATE): _paced(folder, options, DELAY_RATE, far_seconds, "far")}
        seen_ms: dict[float, float] = {}  # {delay of a cable: least time on its wire}
        for pair in cables:
            task = {"paced": paced, "seconds": far_seconds, "bulk": []}
            figures = _measured(3, pair, task)
            _add(result, 3, pair, figures)
            links_ms = figures[str(DELAY_RATE)]["links_ms"]
            seen_ms |= dict(zip(pair, (links_ms[name][0] for name in LINKS), strict=True))
    result.claims += [_delay_claim(delay_ms, seen_ms) for delay_ms in seen_ms if delay_ms]
    result.notes += [
        "hosts are namespaces of one machine: they share its clock and its cores, so three of "
        "them compete for what one would have alone",
        "cables: of host-1 (bus source) and host-2 (sensors); a switch of ours, in user space, "
        "holds each frame so long, one way; else the kernel's bridge joins the hosts",
        "links: the least and the mean time of a message on the wire, as the job's own report has "
        "them; the least is the link's own delay, the rest is waiting for a core of this machine",
        "p50, p99, max: of all results of a run, as the job's own report has them",
        "every run's results were compared with the offline query's",
    ]
    return result


def _paced(folder: Path, options: Options, rate: int, seconds: int, mark: str = "") -> Paths:
    tables = paced_tables(options.seed, rate=rate, seconds=seconds)
    return [_written(t, folder / f"{mark}{rate}-{n}") for n, t in enumerate(tables)]


def _bulk(folder: Path, options: Options) -> Paths:
    tables = join_tables(options.seed, events=BULK_EVENTS // 2, seconds=BULK_S)
    return [_written(table, folder / f"bulk-{n}") for n, table in enumerate(tables)]


def _written(table: Any, path: Path) -> str:
    write(table, path)
    path.chmod(0o644)
    return str(path)


def _measured(
    count: int, cables_ms: tuple[float, float] | None, task: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of a task on so many fresh hosts."""
    delays = {}
    if cables_ms is not None:
        delays = {f"host-{n}": max(ms, LEAST_MS) for n, ms in enumerate(cables_ms, 1)}
    # A slot to a host: what distribution costs, not what more cores of a host gain.
    with Hosts(count, delay_ms=delays) as hosts, started(hosts, slots=1) as environment:
        head = hosts.hosts[0]
        address = f"{head.ip}:{GCS_PORT}"
        said = json.dumps({**task, "address": address})
        words = ["python3", "-m", "benchmarks.engine.on_hosts", said]
        done = head.run(words, timeout=RUN_S, env=environment)
        if done.returncode != 0:
            raise WrongResultError(f"{count} hosts: {done.stderr[-2_000:]}")
        figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        check(figures["nodes"] == count, f"{figures['nodes']} nodes joined of {count}")
        return figures


def _add(
    result: Result, count: int, cables_ms: tuple[float, float] | None, figures: dict[str, Any]
) -> None:
    name, link = f"{count} hosts", "–"
    if cables_ms is not None:
        link = " and ".join(f"{ms:g}" for ms in cables_ms)
        name += f", cables of {link} ms"
    for rate, found in figures.items():
        if rate in ("nodes", "throughput"):
            continue
        times_ms = found["links_ms"].items()
        links = ", ".join(f"{one} {least:.2f}, {mean:.2f}" for one, (least, mean) in times_ms)
        times = [found[key] for key in ("p50_ms", "p99_ms", "max_ms", "error_ms")]
        rows = f"{found['results']:,}"
        result.rows.append([count, link, f"{int(rate):,}", rows, *times, links or "–"])
    if "throughput" in figures:
        speed = figures["throughput"]["million_per_s"]["median"]
        result.rows.append([count, link, f"{speed:.1f} M", *["–"] * 6])
    result.figures[name] = figures


def _delay_claim(delay_ms: float, seen_ms: dict[float, float]) -> Claim:
    """Return that the report's time on a wire is longer by its cable's delay than without one."""
    return Claim(
        f"cable of {delay_ms:g} ms: the report's least time on the wire is off by, ms",
        abs(seen_ms[delay_ms] - seen_ms[0.0] - delay_ms),
        "<=",
        max(NEAR_MS, NEAR_PART * delay_ms),
    )
