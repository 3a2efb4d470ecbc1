"""`python -m benchmarks` lists the benchmarks; `python -m benchmarks NAME …` runs some.

DATA=<folder> in the environment says where real data lies (see CONTRIBUTING).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import groupby

from benchmarks.ended import Ended
from benchmarks.frame import NotHereError, Options, Result, held
from examples.real_data import NoRealData

BENCHMARKS = {  # {name: (module, what it measures)}; the first room of each module is its folder
    "merge": ("engine.merge", "Slack-ScaleGate alone: 2 and 1,500 writers, batches of 1 to 8,192"),
    "join-throughput": ("engine.join_throughput", "4 M events through the join, sparse and dense"),
    "aggregate": ("engine.aggregate", "5 M events, 10 % late, mean and count per key and second"),
    "slices": ("engine.slices", "CPU beside the best fixed length of slices, also when busy"),
    "ground": ("engine.ground", "places of a promise, hops, contracts: counted in the code"),
    "many-stages": ("engine.many_stages", "a row in a slot of 300 stages beside one of 10: CPU"),
    "before-after": (
        "engine.before_after",
        "merge, joins, aggregate, hosts, beside BEFORE=<ref>",
    ),
    "flows-at-random": (
        "engine.flows_at_random",
        "2,000 flows beside pandas and DuckDB, 50 on Ray",
    ),
    "any-replicas": ("engine.any_replicas", "2,000 keyed flows, replicas of 1 to 7: equal bytes"),
    "checkpoints": (
        "engine.checkpoints",
        "1 M rows or keys: a cut, its file, the way back",
    ),
    "checkpoint-cost": (
        "engine.checkpoint_cost",
        "CPU of four flows with checkpoints beside without, 1 k and 1 M keys, in turns",
    ),
    "recovery-simulated": (
        "engine.recovery_simulated",
        "5,000 runs that fail and recover: each row decided once",
    ),
    "recovery": (
        "engine.recovery.run",
        "jobs that come back: kills, halts, cut links, full disks; gaps",
    ),
    "recovery-spark": ("engine.recovery.spark", "a Spark stream whose processes are killed"),
    "recovery-quiet": (
        "engine.recovery.quiet",
        "half an hour on a busy machine: no job goes back for a function that computes",
    ),
    "sink-kill": ("engine.sinks.kill", "a hundred kills during live sinks: what readers see"),
    "cores": ("engine.cores", "joins and aggregates on 1 and 2 slots of a node, simulated to 64"),
    "skew": ("engine.skew", "even keys, Zipf's, half in one: 2 slots, memory, the report"),
    "replicas-latency": (
        "engine.replicas_latency",
        "R = 2 in order beside R = 1, 10k/s; 64 × 64 channels simulated",
    ),
    "join-latency": ("engine.join_latency", "the join at 1k, 10k, 50k/s: on arrival, in order"),
    "multinode": ("engine.multinode", "the join on 1 to 3 hosts, and what links' delays look like"),
    "partitions": ("engine.partitions", "1,000 files apart or overlapping, 200 of a Spark frame"),
    "replays": ("engine.replays", "feeds recorded together: own starts, and one beginning"),
    "cost": ("engine.cost", "CPU, by thread, at 100 to 100k/s and idle; beside BEFORE=<git ref>"),
    "live-poll": ("engine.live_poll", "a poll of few rows, 10k/s: CPU, latency; beside BYTEWAX="),
    "recovery-peers": (
        "engine.recovery.peers",
        "a kill of ours, of BYTEWAX= and of Flink: gap, lost, doubled",
    ),
    "values": ("engine.values.compare", "each type through each operator and sink, beside DuckDB"),
    "dirty": ("engine.dirty.run", "200 files with faults: read, or refused in expected words"),
    "operators": ("operators.run", "CPU of each operator and Nexmark, beside Polars and DuckDB"),
    "operator-lines": ("operators.lines", "lines of code of each operator"),
    "nexmark": ("operators.beside_flink", "Nexmark in event-time order, beside Flink"),
    "conformance": (
        "conformance.run",
        "cases of other engines' tests, as flows of ours; Nexmark with kills (DATA=)",
    ),
    "conformance-ray": (
        "conformance.on_ray",
        "Nexmark on Ray, 1 to 3 replicas, without a kill and with one (DATA=)",
    ),
    "mace-training": ("mace.training", "worst latency predicted from 0.5 to 100 % of 75k (DATA=)"),
    "mace-time": ("mace.over_time", "Mace and latency over time, three chunks of visits (DATA=)"),
    "mace-gates": ("mace.gates", "the congestion flow with gates: waiting and work, predicted"),
    "mace-operators": ("mace.operators", "14 to 70 operators on one node, predicted (DATA=)"),
    "mace-nodes": ("mace.nodes", "42 operators on 4 to 13 nodes, placed at random (DATA=)"),
    "mace-ray": ("mace.on_ray.slept", "all of mace-* on Ray, operators that sleep (DATA=)"),
    "mace-survey": ("mace.survey", "twenty ordinary flows, predicted beside measured, also on Ray"),
    "plan-selection": ("mace.plan_selection", "three plans of the stock query, told apart (DATA=)"),
    "placement": ("mace.placement", "Mace-HC beside Corr and chance, 20 to 400 nodes; a lost node"),
    "provision": ("mace.provision", "the fewest nodes for a deadline, admission, links: 20 flows"),
    "scheduling": ("mace.scheduling", "worst latency under seven orders of work, Theorem 1"),
    "ssg-read": ("ssg.read", "what a read costs 1 to 8 readers: ready-only, with a slack, K-slack"),
    "ssg-scale": ("ssg.scale", "a join on 1 and 2 operators behind one gate, simulated to 8"),
    "ssg-threshold": ("ssg.threshold", "fixed slacks: latency, detected, out-of-order tuples"),
    "sltuner-zipf": ("sltuner.zipf", "a deadline of 6 s, buses late in waves: all policies"),
    "predictors": ("sltuner.predictors", "the next second of a gate, predicted by four models"),
    "sltuner-drift": ("sltuner.drift", "a deadline of 35 s, buses come later and later for ever"),
    "sltuner-chain": ("sltuner.chain", "two gates that share a deadline of 6 s"),
    "sltuner-warsaw": ("sltuner.warsaw", "deadlines of 20 to 60 s, real arrivals of buses (DATA=)"),
    "sltuner-ray": ("sltuner.on_ray", "the four flows with a deadline on Ray, a minute each"),
    "reorder-single": ("order.single", "a source out of order, mended by number or buffer (DATA=)"),
    "reorder-many": ("order.many", "1 to 20 sources and real phones, mended (DATA=)"),
    "clock-drift": ("order.clock_drift", "two sources, a clock off by up to 1 h (DATA=)"),
    "drift-windows": ("order.drift_windows", "windows that allow for clocks: 100 draws (DATA=)"),
    "drift-patterns": ("order.drift_patterns", "e1 followed by e2, 44 ms apart by two clocks"),
    "probslack-distributions": (
        "probslack.distributions",
        "windows closed early: Fig. 6, MER, slack",
    ),
    "probslack-calibration": (
        "probslack.calibration",
        "the chance that is stated, beside what was missed",
    ),
    "probslack-f": ("probslack.frequency", "the same over f, beside the oracle: Fig. 7"),
    "probslack-budget": ("probslack.budget", "the same over δ: Fig. 8"),
    "probslack-drift": ("probslack.drift", "the same while distributions change: Fig. 9"),
    "probslack-cost": ("probslack.cost", "what closing costs for each event: Table 1"),
    "probslack-real": ("probslack.real", "the same on real buses and phones: Fig. 10, 11 (DATA=)"),
    "probslack-ray": ("probslack.on_ray", "windows that close in time on Ray, real arrivals"),
    "pattern-speed": (
        "patterns.speed",
        "events/s of the pattern operator beside Flink's CEP (DATA=)",
    ),
    "shed-saves": ("patterns.saved", "CPU time and matches while events, or pairs, go (DATA=)"),
    "espice-latency": ("patterns.latency", "latency under +20, +40 %, on Ray: Fig. 7 (DATA=)"),
    "espice-q1": ("espice.q1", "what shedding makes of n near a sprinter: Fig. 5a, 5b, 6a (DATA=)"),
    "espice-q2": ("espice.q2", "the same of n quotes that rise or fall: Fig. 5c, 5d (DATA=)"),
    "espice-q3": ("espice.q3", "the same of 20 contracts in sequence: Fig. 5e, 6b (DATA=)"),
    "espice-q4": ("espice.q4", "the same of 14 steps with repetition: Fig. 5f (DATA=)"),
    "espice-windows": ("espice.windows", "the same with windows of varying size: Fig. 8 (DATA=)"),
    "espice-bins": ("espice.bins", "the same over the size of bins: Fig. 9 (DATA=)"),
    "espice-cost": ("espice.cost", "what a decision costs beside the matcher: Fig. 10 (DATA=)"),
}
PAGES = {  # {page of docs/benchmarks: its benchmarks}, where it is not named like their folder
    "replicas": {"cores", "skew", "replicas-latency"},
    "engine-latency": {"join-latency", "multinode"},
    "replays": {"replays"},
    "partitions": {"partitions"},
    "engine-cost": {"cost"},
    "live-poll": {"live-poll"},
    "engine-recovery": {
        "checkpoints",
        "checkpoint-cost",
        "recovery-simulated",
        "recovery",
        "recovery-spark",
        "recovery-quiet",
        "sink-kill",
    },
    "recovery-peers": {"recovery-peers"},
    "values": {"values", "dirty"},
    "mace-nodes": {"mace-operators", "mace-nodes"},
    "mace-ray": {"mace-ray", "mace-survey"},
    "placement": {"plan-selection", "placement", "provision"},
    "scheduling": {"scheduling"},
    "sltuner-flows": {"sltuner-drift", "sltuner-chain", "sltuner-warsaw", "sltuner-ray"},
    "predictors": {"predictors"},
    "clocks": {"clock-drift", "drift-windows", "drift-patterns"},
    "probslack-cost": {"probslack-cost"},
    "probslack-real": {"probslack-real", "probslack-ray"},
    "shedding": {"shed-saves"},
    "shedding-ray": {"espice-latency"},
}


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmarks; return the exit code.

    0: all claims hold; 1: a claim fails, or a benchmark could not run; 3: one ended in an error.
    Wrong usage exits with 2.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}, all")
    parser.add_argument("--quick", action="store_true", help="a sample, in less than a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--seed", type=int, default=Options.seed, help="of all that is drawn")
    parser.add_argument(
        "--seeds", type=int, default=1, help="so many runs, one after the other, of seeds from that"
    )
    given = parser.parse_args(arguments)
    if not given.names:
        print("\n".join(listing()))
        return 0
    names = list(BENCHMARKS) if "all" in given.names else given.names
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if given.seeds < 1:
        parser.error(f"--seeds {given.seeds}: give a whole number above 0")
    # Where several processes measure at once each has a core; threads of a matrix product would
    # take the others' as well. Read when NumPy is imported, which the benchmarks do.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    ended = Ended()
    for name in names:
        found = []
        for seed in range(given.seed, given.seed + given.seeds):
            result = _run(name, Options(quick=given.quick, seed=seed), ended)
            if result is None:
                break
            found.append(result)
        if given.seeds > 1 and found:
            print(*held(name, found, first_seed=given.seed), "", sep="\n", flush=True)
    if len(names) > 1:
        print(*ended.lines(), "", sep="\n", flush=True)
    if given.json:
        print(ended.last_line())
    return ended.exit_code


def _run(name: str, options: Options, ended: Ended) -> Result | None:
    """Run a benchmark once and print its result; None if it gave none. Note how it ended."""
    began_s = time.monotonic()
    try:
        result = _benchmark(name)(options)
    except (NoRealData, NotHereError) as problem:
        print(f"{name}: left out: {problem}", file=sys.stderr, flush=True)
        ended.left_out[name] = str(problem)
        return None
    except Exception as problem:  # the others are to run
        traceback.print_exc()
        ended.add_error(name, options, problem)
        return None
    took_s = time.monotonic() - began_s
    print(result.text(name, options), f"took {took_s:.0f} s", "", sep="\n", flush=True)
    ended.add(name, options, result, took_s)
    return result


def listing() -> list[str]:
    """Return a line for each benchmark, under a line for its folder and its page."""
    lines = []
    for page, names in groupby(BENCHMARKS, key=page_of):
        of_page = list(names)
        lines.append(f"benchmarks/{folder_of(of_page[0])}, docs/benchmarks/{page}.md")
        lines += [f"  {name:<16} {BENCHMARKS[name][1]}" for name in of_page]
    return lines


def folder_of(name: str) -> str:
    """Return the folder of a benchmark: that of a paper, or the engine's."""
    return BENCHMARKS[name][0].partition(".")[0]


def page_of(name: str) -> str:
    """Return the page of `docs/benchmarks` that has a benchmark's figures."""
    return next((page for page, names in PAGES.items() if name in names), folder_of(name))


def _benchmark(name: str) -> Callable[[Options], Result]:
    module = import_module(f"benchmarks.{BENCHMARKS[name][0]}")
    run: Callable[[Options], Result] = module.run
    return run


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
