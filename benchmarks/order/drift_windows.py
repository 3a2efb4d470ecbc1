"""Averages over windows, of two sources whose clocks are off by what measuring them leaves.

[thesis] Tables 5.11, 5.12, Fig. 5.14: the mean speed of soccer players in windows of 10 s, where
one source's clock is 5 ms off and corrected by a round trip T_a of 0.125 ms. Beside the true mean
stand the window as it is (middle) and the mean of the three (low, middle, high). The thesis has one
draw of seven windows; here are 100, at six T_a, for two densities of events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, check
from benchmarks.order.clock_errors import error_ns
from benchmarks.picture import Picture
from benchmarks.side_by_side import side_by_side
from examples.real_data import soccer
from slackwater.runtime.model import (
    END_NS,
    NS_PER_SECOND,
    Batch,
    BoolArray,
    GateRead,
    Int64Array,
    Progress,
)
from slackwater.runtime.model.nullable import Nullable, Numbers
from slackwater.runtime.registry.operators import make_operator

MS = 1_000_000
WINDOW_S = 10
WINDOW_NS = WINDOW_S * NS_PER_SECOND
DRIFT_NS = 5 * MS
DENSE, AS_RECORDED = "15,000/s", "220/s"
ROUND_TRIPS_MS = (0.125, 1, 10, 50, 100, 500)
DRAWS, QUICK_DRAWS = 100, 10
DENSE_ROWS = 1_000_000
_BREAK_NS = NS_PER_SECOND
_ROUNDING = 1e-9
MICRO = 1e6
PAPER_MIDDLE = (0, -0.12, 1.54, -1.53, 0.06, -0.25, 1.43)
PAPER_MEAN = (0, 0.22, 0.21, -0.36, 0.57, -0.60, 0.04)
"""[thesis] Tables 5.11 and 5.12, µm/s: true less measured."""
QUARTERS = ("0–¼", "¼–½", "½–¾", "¾–1")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Played:
    """Rows of a match, by the true time; shape (rows,) each. Source 1 has every second player."""

    true_ns: Int64Array
    sources: Int64Array
    speed: Floats


@dataclass(frozen=True, eq=False)
class Measured:
    """What whole windows came to, of all draws; shape (windows,) each.

    Attributes:
        draws: the number of the draw.
        off: by how much of the bound clocks were off in it, the mean of the two.
        middle: error of the window as it is.
        mean: error of the mean of the three.
        is_inside: whether the true mean is between the least and the greatest of the three.
        width: of that interval.
    """

    draws: Int64Array
    off: Floats
    middle: Floats
    mean: Floats
    is_inside: npt.NDArray[np.bool_]
    width: Floats

    @property
    def ratio(self) -> float | None:
        """The mean absolute error of the mean of the three, by that of the middle window.

        None: the middle window was right throughout, or there are no windows.
        """
        return _ratio(self.mean, self.middle)

    def quarters(self) -> list[Measured]:
        """Return what it is where clocks were off by up to ¼ of the bound, by up to ½, …."""
        quarters = np.minimum((self.off * 4).astype(int), 3)
        return [
            Measured(*(getattr(self, one.name)[quarters == quarter] for one in fields(self)))
            for quarter in range(4)
        ]

    @property
    def gain(self) -> float:
        """By how much the mean of the three is nearer than the middle, m/s, on average."""
        if not len(self.off):
            return 0.0
        return float(np.abs(self.middle).mean() - np.abs(self.mean).mean())

    def ratios_of_draws(self) -> Floats:
        """Return that ratio of each draw."""
        of_draw = [np.bincount(self.draws, np.abs(one)) for one in (self.mean, self.middle)]
        return np.asarray(of_draw[0] / np.maximum(of_draw[1], 1e-15))


def _ratio(errors: Floats, others: Floats) -> float | None:
    total = float(np.abs(others).sum())
    return float(np.abs(errors).sum()) / total if total else None


def _told(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"


def run(options: Options) -> Result:
    """Measure each density and round trip."""
    draws = QUICK_DRAWS if options.quick else DRAWS
    settings = [
        (density, round_trip_ms)
        for density in (DENSE, AS_RECORDED)
        for round_trip_ms in ROUND_TRIPS_MS
    ]
    rows = {name: played(name, quick=options.quick) for name in (DENSE, AS_RECORDED)}
    check_flow(rows[AS_RECORDED])
    tasks = [
        partial(measure, rows[density], round(round_trip_ms * MS), draws=draws, seed=options.seed)
        for density, round_trip_ms in settings
    ]
    found = dict(zip(settings, side_by_side(tasks, what="drift-windows"), strict=True))
    result = Result(
        f"{draws} draws of two sources' clock errors and of where windows begin; windows of "
        f"{WINDOW_S} s; {len(rows[DENSE].speed):,} rows at {DENSE}, "
        f"{len(rows[AS_RECORDED].speed):,} as recorded",
        [
            "events", "T_a, ms", "middle, µm/s", "mean of three", "ratio",
            *(f"off by {one}" for one in QUARTERS), "inside, %", "width, µm/s",
        ],
    )  # fmt: skip
    for (density, round_trip_ms), one in found.items():
        result.rows.append(
            [
                density,
                f"{round_trip_ms:g}",
                float(np.abs(one.middle).mean()) * MICRO,
                float(np.abs(one.mean).mean()) * MICRO,
                _told(one.ratio),
                *(_told(quarter.ratio) for quarter in one.quarters()),
                f"{100 * one.is_inside.mean():.1f}",
                float(one.width.mean()) * MICRO,
            ]
        )
        result.figures[f"{density} {round_trip_ms:g} ms"] = {
            "windows": one.middle.size,
            "middle_mae_um_per_s": float(np.abs(one.middle).mean()) * MICRO,
            "mean_of_three_mae_um_per_s": float(np.abs(one.mean).mean()) * MICRO,
            "ratio": one.ratio,
            "by_quarter_of_bound": {
                name: {"windows": len(own.off), "ratio": own.ratio}
                for name, own in zip(QUARTERS, one.quarters(), strict=True)
            },
            "inside_percent": 100 * float(one.is_inside.mean()),
            "width_um_per_s": float(one.width.mean()) * MICRO,
        }
    _judge(result, found)
    result.notes.append(f"drawn: {draw(found)}")
    return result


def _judge(result: Result, found: Mapping[tuple[str, float], Measured]) -> None:
    paper = found[DENSE, ROUND_TRIPS_MS[0]]
    papers = [float(np.abs(one).mean()) for one in (PAPER_MIDDLE, PAPER_MEAN)]
    each = paper.ratios_of_draws()
    result.figures["paper"] = {
        "middle_mae_um_per_s": papers[0],
        "mean_of_three_mae_um_per_s": papers[1],
        "ratio": papers[1] / papers[0],
        "draws_of_ours_at_most_that": int((each <= papers[1] / papers[0]).sum()),
    }
    inside = {name: 100 * float(one.is_inside.mean()) for name, one in found.items()}
    worst = min(inside, key=lambda name: inside[name])
    quarters, most = (
        paper.quarters(),
        "gain of the mean of three, µm/s, T_a 0.125 ms, clocks off by",
    )
    result.claims += [
        Claim(
            "mean of three / middle, T_a 0.125 ms (paper: deviation reduced by ~50 %)",
            paper.ratio or 0,
            "<=",
            0.5,
        ),
        Claim(f"{most} over ¾ of the bound: it helps", quarters[3].gain * MICRO, ">=", 0),
        Claim(f"{most} under ¼ of the bound: it hurts", quarters[0].gain * MICRO, "<=", 0),
        Claim(
            "true mean inside the interval, T_a 0.125 ms, %",
            inside[DENSE, ROUND_TRIPS_MS[0]],
            ">=",
            90,
        ),
    ]
    result.notes += [
        f"paper, one draw of seven windows: {papers[0]:.2f} and {papers[1]:.2f} µm/s, a ratio of "
        f"{papers[1] / papers[0]:.2f}; {int((each <= papers[1] / papers[0]).sum())} of our "
        f"{len(each)} draws come to no more",
        f"the interval holds the true mean least often, {inside[worst]:.1f} %, at {worst[0]}, "
        f"T_a {worst[1]:g} ms",
        "off by: the mean clock error of the two sources, of the bound T_a/2; –: no such draw, or "
        "the middle window was right in all",
    ]


def played(density: str, *, quick: bool = False) -> Played:
    """Return the match, its breaks closed; or repeated, time going on, at 15,000 rows a second."""
    table = pq.read_table(
        soccer() / "tromso_anzhi_10min.parquet", columns=["event_time_us", "player", "speed_mps"]
    )
    times = table["event_time_us"].to_numpy().astype(np.int64) * 1_000
    step = np.diff(times, prepend=times[0])
    step[step > _BREAK_NS] = 0
    _, players = np.unique(table["player"].to_numpy(), return_inverse=True)
    speed = table["speed_mps"].to_numpy().astype(np.float64)
    if density == AS_RECORDED:
        return Played(step.cumsum(), players % 2, speed)
    rows = np.arange(DENSE_ROWS // 2 if quick else DENSE_ROWS)
    at_ns = rows * NS_PER_SECOND // 15_000
    return Played(at_ns, (players % 2)[rows % len(speed)], speed[rows % len(speed)])


def measure(rows: Played, round_trip_ns: int, *, draws: int, seed: int) -> Measured:
    """Return what the operator makes of the rows under so many draws of clocks."""
    rng = np.random.default_rng([seed, round_trip_ns])
    bound_ns = round_trip_ns // 2
    found = []
    for number in range(draws):
        true_ns = rows.true_ns + int(rng.integers(WINDOW_NS))
        errors = np.array(
            [
                error_ns(drift_ns=drift_ns, round_trip_ns=round_trip_ns, there=float(rng.random()))
                for drift_ns in (0, DRIFT_NS)
            ]
        )
        told_ns = true_ns + errors[rows.sources]
        least, middle, mean, most = of_operator(told_ns, rows.speed, bound_ns, like=true_ns)
        if number == 0:
            for turn in (-1, 0, 1):
                own = offline(told_ns + turn * bound_ns, rows.speed, like=true_ns)
                is_in = (least - _ROUNDING <= own) & (own <= most + _ROUNDING)
                check(bool(is_in.all()), f"a window moved by {turn} bounds is not in the interval")
                if turn == 0:
                    check(np.allclose(own, middle, rtol=_ROUNDING), "the middle is another")
        true = offline(true_ns, rows.speed, like=true_ns)
        is_inside = (least - _ROUNDING <= true) & (true <= most + _ROUNDING)
        off = np.full(len(true), np.abs(errors).mean() / bound_ns)
        columns = (np.full(len(true), number), off, middle - true, mean - true, is_inside)
        found.append([*columns, most - least])
    return Measured(*(np.concatenate(each) for each in zip(*found, strict=True)))


def of_operator(
    told_ns: Int64Array, speed: Floats, bound_ns: int, *, like: Int64Array
) -> list[Floats]:
    """Return the least, the middle, the mean and the greatest of the three; see `offline`."""
    order = told_ns.argsort(kind="stable")
    batch = Batch(
        event_time_ns=told_ns[order],
        stimulus_time_ns=told_ns[order],
        columns={"speed": speed[order]},
    )
    step = flow_of(pa.table({"ts": told_ns[:1], "speed": speed[:1]}), bound_ns).steps["means"]
    made = (
        make_operator(step)
        .work(GateRead([batch], [None], END_NS, Progress(END_NS, 0)), now_ns=0)
        .rows
    )
    assert made is not None
    return _whole(made.columns, like)


def _whole(columns: Mapping[str, Any], like: Int64Array) -> list[Floats]:
    windows = np.asarray(columns["window_start"]).astype(np.int64) // WINDOW_NS
    first, last = int(like.min()) // WINDOW_NS, int(like.max()) // WINDOW_NS
    is_whole = (windows > first) & (windows < last)
    check(int(is_whole.sum()) == last - first - 1, "a window is missing")
    return [_values(columns[name], is_whole) for name in ("v_low", "v", "v_mean", "v_high")]


def _values(column: Numbers, rows: BoolArray) -> Floats:
    """Return the values of some rows, none of them null: a window at an end may have no value."""
    if not isinstance(column, Nullable):
        return np.asarray(column[rows])
    check(bool(column.valid[rows].all()), "a whole window has no value")
    return np.asarray(column.values[rows])


def offline(at_ns: Int64Array, speed: Floats, *, like: Int64Array) -> Floats:
    """Return the mean of each window, shape (windows,), without any code of the runtime.

    Of those between the first and the last that the times `like` touch: those are not whole.
    """
    first, last = int(like.min()) // WINDOW_NS, int(like.max()) // WINDOW_NS
    windows = at_ns // WINDOW_NS - first + 1  # one more on each side, for times that were moved
    total = np.bincount(windows, speed, last - first + 3)
    return np.asarray((total / np.maximum(np.bincount(windows, None, last - first + 3), 1))[2:-2])


def flow_of(rows: pa.Table, bound_ns: int, *, by_source: bool = False) -> sw.Dataflow:
    """Return the flow; of a source of its own for each clock, if asked for."""
    flow = sw.Dataflow("speeds", slack=None)
    parts = [rows]
    if by_source:
        parts = [rows.filter(pc.equal(rows["source"], one)).drop(["source"]) for one in (0, 1)]
    streams = [
        flow.source(f"players-{number}", sw.table(part), event_time="ts")
        for number, part in enumerate(parts)
    ]
    stream = streams[0].merge(streams[1]) if by_source else streams[0]
    stream.aggregate(
        window=sw.tumbling(f"{WINDOW_S}s"), v=sw.mean("speed"), drift=f"{bound_ns}ns", name="means"
    ).sink("out", sw.collect_sink())
    return flow


def check_flow(rows: Played) -> None:
    """See to it that a whole flow of two sources gives what the operator alone does."""
    told_ns, bound_ns = rows.true_ns + np.array([20 * MS, -10 * MS])[rows.sources], 25 * MS
    told_ns -= told_ns.min()
    order = told_ns.argsort(kind="stable")
    table = pa.table({"ts": told_ns, "speed": rows.speed, "source": rows.sources}).take(order)
    job = sw.Simulation().submit(flow_of(table, bound_ns, by_source=True))
    job.wait()
    result = job.result("out")
    found = _whole({name: result[name].to_numpy() for name in result.column_names}, told_ns)
    expected = of_operator(told_ns, rows.speed, bound_ns, like=told_ns)
    check(np.allclose(found, expected, rtol=_ROUNDING), "the flow gives other windows")


def draw(found: Mapping[tuple[str, float], Measured]) -> Path:
    """Draw errors and coverage over the round trip; return the path of the picture."""
    title = f"drift-windows: mean speed in windows of {WINDOW_S} s, two sources"
    picture = Picture(title, (11.0, 4.2), columns=3)
    errors, ratios, inside = picture.panels
    for density, style in ((DENSE, "-"), (AS_RECORDED, "--")):
        own = [found[density, one] for one in ROUND_TRIPS_MS]
        for name, colour in (("middle", "tab:grey"), ("mean", "tab:blue")):
            values = [np.abs(getattr(one, name)).mean() * MICRO for one in own]
            label = f"{'mean of three' if name == 'mean' else name}, {density}"
            errors.loglog(ROUND_TRIPS_MS, values, style, color=colour, label=label)
        for quarter, colour in ((0, "tab:red"), (3, "tab:green")):
            values = [one.quarters()[quarter].ratio or np.nan for one in own]
            label = f"clocks off by {QUARTERS[quarter]} of the bound, {density}"
            ratios.loglog(ROUND_TRIPS_MS, values, style, color=colour, label=label)
        percent = [100 * one.is_inside.mean() for one in own]
        inside.semilogx(ROUND_TRIPS_MS, percent, style, color="tab:blue", label=density)
    ratios.axhline(1, color="black", linewidth=0.8)
    errors.set(title="mean absolute error, µm/s", xlabel="T_a, ms")
    ratios.set(title="mean of three / middle", xlabel="T_a, ms")
    inside.set(title="true mean inside the interval, %", xlabel="T_a, ms", ylim=(0, 102))
    return picture.save("drift-windows")
