"""One slot of `cores`, as a child of a commit's code: `benchmarks/engine/before.py`.

The first line is its settings, each further line asks for a turn; each is answered with a line.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import slackwater as sw
from benchmarks.engine.cores_work import Sizes, works_of
from benchmarks.jobs import collected

CHILD = "benchmarks.engine.cores_one_slot"
PLACEMENT = {"*": "node-1/1"}


def main() -> None:
    """Answer each line of stdin: {"seed", "sizes"} first, then anything for a turn of each work."""
    with tempfile.TemporaryDirectory() as name, sw.Cluster.local(nodes=1, cores=2) as cluster:
        works = None
        for line in sys.stdin:
            if works is None:
                setting = json.loads(line)
                works = works_of(setting["seed"], Sizes(*setting["sizes"]), Path(name) / "rows")
            rates = {}
            for work in works:
                report, rows = collected(cluster.submit(work.build(None), placement=PLACEMENT))
                work.verify(rows)
                rates[work.name] = work.events / report.elapsed_s / 1e6
            print(json.dumps(rates), flush=True)


if __name__ == "__main__":
    main()
