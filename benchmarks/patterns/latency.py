"""[espice] Fig. 7: latency under 20 and 40 % more than can be done, on Ray; is the bound kept.

Q1 and Q2 of [espice] as a user writes them, on real positions and quotes that come again and again.
What can be done is measured first: the same flow as quickly as it goes. Then events come at half of
that, so that the shedder learns, and then at more than that.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from matplotlib.figure import Figure

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, save_picture
from benchmarks.patterns.endless import Endless
from benchmarks.patterns.queries import Asked, query_1_of_all, query_2
from runtime.measure.report import JobReport
from runtime.measure.series import SeriesBin
from runtime.shedding import Espice
from runtime.shedding.counts import SheddingCounts

BOUND_S = 1.0
OVER = {"R1": 1.2, "R2": 1.4}
SURGE_S, QUICK_SURGE_S = 75.0, 4.0
"""Of two queries at two rates: five minutes in all."""
CALM_S, QUICK_CALM_S = 10.0, 2.0
CALM = 0.5
PROBES_S = (3.0, 15.0)
"""Two lengths at an assumed rate: what they differ by in time is work, and no start of a job."""
ASSUMED = 100_000.0
LIMIT_S = 300.0
OUT = Path("out/benchmarks")


def run(options: Options) -> Result:
    """Measure what can be done, then ask for more."""
    queries = [query_1_of_all(rate_hz=2, events=700), query_2(options.seed)]
    surge_s = QUICK_SURGE_S if options.quick else SURGE_S
    calm_s = QUICK_CALM_S if options.quick else CALM_S
    result = Result(
        "Q1, n 4, windows of 700 events, ten players in turn the striker; Q2, n 20, windows of "
        f"2,000; on one local node; {calm_s:g} s at {CALM:g} of what can be done, then "
        f"{surge_s:g} s at more; bound {BOUND_S:g} s",
        [
            "query, rate",
            "events/s",
            "results",
            "p50, ms",
            "p99, ms",
            "worst, ms",
            "slowest event, ms",
            "events shed, %",
            "pairs dropped, %",
            "stated recall, %",
        ],
    )
    drawn: dict[str, list[SeriesBin]] = {}
    with sw.Cluster.local(nodes=1) as cluster:
        for asked in queries:
            capacity = _capacity(cluster, asked)
            result.figures[f"{asked.name}: capacity"] = capacity
            result.notes.append(
                f"{asked.name}: what can be done: {capacity:,.0f} events/s, nothing shed"
            )
            for rate, over in OVER.items():
                name = f"{asked.name}, {rate}"
                rates = ((calm_s, CALM * capacity), (surge_s, over * capacity))
                report = _ran(cluster, asked, sw.espice(f"{BOUND_S:g}s"), rates, speed=1.0)
                bins = report.sinks[0].series.bins()
                drawn[name] = bins
                worst_s = _tell(result, name, over * capacity, bins, report)
                result.claims.append(Claim(f"{name}: slowest event, s", worst_s, "<=", BOUND_S))
    result.notes.append(f"drawn: {_draw(drawn)}")
    return result


def _capacity(cluster: sw.Cluster, asked: Asked) -> float:
    """Return how many events a second are worked off if they come as quickly as they can."""
    spent, rows = [], []
    for seconds in PROBES_S:
        began = time.monotonic()
        _ran(cluster, asked, sw.espice("1h"), ((seconds, ASSUMED),), speed=None)
        spent.append(time.monotonic() - began)
        rows.append(seconds * ASSUMED)
    return (rows[1] - rows[0]) / (spent[1] - spent[0])


def _ran(
    cluster: sw.Cluster,
    asked: Asked,
    shed: Espice,
    rates: tuple[tuple[float, float], ...],
    *,
    speed: float | None,
) -> JobReport:
    flow = sw.Dataflow("latency")
    rows = asked.rows.set_column(0, "time", asked.rows["time"].cast(pa.int64()))
    stream = flow.source(
        "quotes", Endless(rows, rates), event_time="time", time_unit="ns", speed=speed
    )
    asked.build(stream, shed).sink("found", sw.callback_sink(_nothing))
    report = cluster.submit(flow).wait(timeout=LIMIT_S)
    assert report.ledger.is_balanced, report.ledger
    return report


def _nothing(rows: pa.RecordBatch) -> None:
    """Results are counted, not kept."""


def _tell(
    result: Result, name: str, rate: float, bins: list[SeriesBin], report: JobReport
) -> float:
    counts = _counts(report)
    latency = report.sinks[0].latency
    shed = 100 * counts.shed / max(report.ledger.entered, 1)
    lost = counts.lost_share
    row = [name, f"{rate:,.0f}", f"{sum(one.count for one in bins):,}"]
    row += [f"{ns / 1e6:.1f}" for ns in (latency.quantile(0.5), latency.quantile(0.99))]
    row += [f"{latency.max_ns / 1e6:.1f}", f"{counts.slowest_ns / 1e6:.1f}", f"{shed:.1f}"]
    row += [f"{100 * counts.dropped / max(counts.pairs, 1):.1f}"]
    row += ["–" if lost is None else f"{'' if counts.is_judged else '≥ '}{100 * (1 - lost):.1f}"]
    result.rows.append(row)
    # Of events that no result comes of latency is known up to the operator.
    worst_s = max(latency.max_ns, counts.slowest_ns) / 1e9
    told = {"worst_s": worst_s, "starts": counts.starts, "reason": counts.reason}
    result.figures[name] = told
    result.claims.append(Claim(f"{name}: times that shedding began", counts.starts, ">=", 1))
    if counts.reason:
        result.notes.append(f"{name}: {counts.reason}")
    return worst_s


def _counts(report: JobReport) -> SheddingCounts:
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    return counts


def _draw(drawn: dict[str, list[SeriesBin]]) -> Path:
    figure = Figure(figsize=(9, 4.2), dpi=110, layout="constrained")
    axis = figure.subplots()
    for name, bins in drawn.items():
        first_s = bins[0].start_ns / 1e9 if bins else 0.0
        axis.plot(
            [one.start_ns / 1e9 - first_s for one in bins],
            [one.max_ns / 1e9 for one in bins],
            label=f"{name}: worst of each second",
        )
    axis.axhline(BOUND_S, color="black", linestyle="--", label="bound")
    axis.set(xlabel="time of the quote, s", ylabel="latency, s", ylim=(0, None))
    axis.set_title("espice-latency: [espice] Fig. 7, on Ray")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    return save_picture(figure, OUT, "espice-latency")
