"""Trials whose fault is a cut link: on hosts of namespaces, each with Ray of its own.

```
this process ──▶ hosts; cuts and mends links between them
  └─ on the first host: trials, a JSON line each ◀──▶ "cut", "mend"
```

Slots of simulated nodes share a host, and speak through sockets of one kernel, which has no link.
Here packets between the hosts of join and sink are lost in both directions, and no side is told.
The job reaches both. So it goes on where it was, once the link is there again.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import slackwater as sw
from benchmarks.engine.recovery.flow import PLACES, rows_of
from benchmarks.engine.recovery.trial import GONE_S, Outcome, Trials, until
from benchmarks.frame import NotHereError
from tests.hosts import Host, Hosts, why_not
from tests.hosts.host_init import SHARED
from tests.hosts.raylets import GCS_PORT, started

EXPECTED = "expected.db"
FILES = ("left.parquet", "right.parquet", EXPECTED)


def outcomes_of_links(folder: Path, trials: Sequence[str], fault: str) -> Iterator[Outcome]:
    """Yield what cut links show, trial by trial.

    Args:
        folder: folder of the inputs, and of the rows of a run without faults.
        trials: names of the trials, from which their chance follows.
        fault: name of the fault.

    Raises:
        NotHereError: hosts cannot be made here.
    """
    if reason := why_not():
        raise NotHereError(f"a cut link needs hosts of namespaces, and cannot be here: {reason}")
    with Hosts(3) as hosts, started(hosts, slots=1) as environment:
        for name in FILES:
            shutil.copy(folder / name, hosts.shared)
        head, *ends = hosts.hosts
        words = ["python3", "-m", __name__, f"{head.ip}:{GCS_PORT}", fault, *trials]
        pipe = subprocess.PIPE
        with head.popen(words, env=environment, stdin=pipe, stdout=pipe) as driver:
            assert driver.stdin is not None
            assert driver.stdout is not None
            for line in driver.stdout:
                message = json.loads(line)
                if "ask" not in message:
                    outcome = Outcome(**message)
                    left = [host.name for host in hosts.hosts if not _ends(host)]
                    outcome.problems += [f"a worker is left on {name}" for name in left]
                    yield outcome
                elif message["ask"] == "cut":
                    ends[0].cut_link(ends[1])
                else:
                    ends[0].mend_link(ends[1])
                driver.stdin.write("\n")
                driver.stdin.flush()
        if driver.returncode:
            raise RuntimeError(f"the driver on {head.name} ended with {driver.returncode}")


def _ends(host: Host) -> bool:
    """Return whether all slots on a host end soon."""
    words = ["sh", "-c", "ps -eo args | grep '[r]ay::SlotActor' || true"]
    return until(lambda: not host.run(words).stdout, GONE_S)


def main(address: str, fault: str, *trials: str) -> None:
    """Run trials from the first host."""
    shared = Path(SHARED)
    places = {stage: node.replace("node", "host") for stage, node in PLACES.items()}
    with sw.Cluster.connect(address) as cluster:
        own = Trials(cluster, shared, rows_of(shared / EXPECTED), places, sees_processes=False)
        for trial in trials:
            rng = random.Random(trial)  # noqa: S311 chance
            outcome = own.outcome(fault, shared / trial.replace(" ", "-"), rng)
            print(json.dumps(vars(outcome)), flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
