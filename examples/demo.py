"""The main job, end to end: Spark prepares late streams, three nodes join them in order.

make demo                      a generated city
make demo DATA=<folder>        Warsaw's buses, from the files in that folder
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

import slackwater as sw
from examples import city_congestion, warsaw_crawl
from examples.city import POLICIES, City, generate
from slackwater.cli.follow import follow
from slackwater.report.live_view import LiveView
from slackwater.report.picture import sparkline
from slackwater.report.render import render_report, report_text
from slackwater.runtime.errors import IngestError


def main() -> int:
    """Run the demo; return the exit code."""
    options = _options()
    console = Console(stderr=True)
    progress = LiveView(console)
    out = Path(options.out or time.strftime("out/demo-%Y%m%d-%H%M%S"))
    try:
        with sw.Cluster.local(nodes=options.nodes, progress=progress.say) as cluster:
            sink = sw.parquet_sink(str(out / "results"))
            if options.data is None:
                flow = _city(cluster, options, sink, progress)
            else:
                flow = _warsaw(cluster, options, sink, progress)
            progress.say("where it runs:")
            for stage, node in cluster.plan(flow).slots.items():
                progress.say(f"  {stage:<12} {node}")
            report, interrupt = follow(cluster.submit(flow), out, show=progress.update)
    except sw.SlackwaterError as problem:
        console.print(f"demo: {problem}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("demo: interrupted; everything has been stopped")
        return 130
    finally:
        progress.close()
    if sys.stdout.isatty():
        render_report(report, Console())
    else:
        print(report_text(report))
    for found in report.sinks:
        print(f"\n{found.name}: p99 latency over stimulus time  {sparkline(found.series)}")
    print(f"\nresults, report.json and latency.png are in {out}")
    if interrupt is not None:
        return 130
    return 0 if report.ledger.is_balanced else 1


def _city(
    cluster: sw.Cluster, options: argparse.Namespace, sink: sw.connectors.Output, progress: LiveView
) -> sw.Dataflow:
    city = City(seconds=options.seconds, rate=options.rate, policy=options.policy)
    progress.say(f"generating {city.seconds:.0f} s of a city ({city.policy} delays)")
    with tempfile.TemporaryDirectory(prefix="slackwater-city-") as folder:
        generate(city, Path(folder))
        progress.say("starting Spark on the cluster (RayDP)")
        spark = cluster.spark()
        progress.say("Spark reads, cleans and orders both streams")
        buses, loops = (
            sw.spark(frame) for frame in city_congestion.prepare(spark.session, Path(folder))
        )
        spark.stop()
    return city_congestion.build(buses, loops, speed=options.speed or 4.0, out=sink)


def _warsaw(
    cluster: sw.Cluster, options: argparse.Namespace, sink: sw.connectors.Output, progress: LiveView
) -> sw.Dataflow:
    files = sorted(Path(options.data).glob("*.parquet"))
    if not files:
        raise IngestError(
            f"DATA={options.data}: no *.parquet files there; give the folder of the Warsaw data"
        )
    path = Path(options.data) if options.all else files[0]
    if not options.all and len(files) > 1:
        progress.say(f"taking {path.name} of {len(files)} files (--all: all, pauses included)")
    progress.say("starting Spark on the cluster (RayDP)")
    spark = cluster.spark()
    progress.say("Spark reads the fixes, drops stale ones, derives speed and cell")
    fixes = sw.spark(warsaw_crawl.prepare(spark.session, path))
    spark.stop()
    return warsaw_crawl.build(fixes, speed=options.speed or 120.0, out=sink)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--data", help="folder of the Warsaw files; else a made-up city")
    parser.add_argument("--all", action="store_true", help="every file of DATA, not the first")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--speed", type=float, help="replay so many times faster than it was")
    parser.add_argument("--seconds", type=float, default=140.0, help="event time of the city")
    parser.add_argument("--rate", type=float, default=11.0, help="multiplies the city's reports")
    parser.add_argument("--policy", choices=sorted(POLICIES), default="zipf")
    parser.add_argument("--out", help="folder for results and report")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
