"""Several benchmarks: each runs, whatever the others do, and the end says how each ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pytest

import benchmarks.__main__ as runner
import slackwater as sw
from benchmarks.frame import Claim, NotHereError, Options, Result
from benchmarks.order.drift_windows import of_operator
from benchmarks.patterns.queries import Asked
from benchmarks.patterns.saved import timed
from benchmarks.patterns.timed import reads_of
from slackwater.runtime.model import NS_PER_SECOND

Run = Callable[[Options], Result]
FIRST, SECOND, THIRD = "merge", "hop", "values"  # any three


def claiming(value: float | None) -> Run:
    return lambda _: Result("a sample", ["a"], claims=[Claim("a figure", value, "<=", 1.0)])


def raising(problem: Exception) -> Run:
    def run(_: Options) -> Result:
        raise problem

    return run


@pytest.fixture
def benchmarks_are(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, Run]], None]:
    def replace(runs: Mapping[str, Run]) -> None:
        monkeypatch.setattr(runner, "BENCHMARKS", dict.fromkeys(runs, ("", "")))
        monkeypatch.setattr(runner, "_benchmark", runs.__getitem__)

    return replace


def test_after_an_error_the_next_runs_and_the_end_lists_it(
    benchmarks_are: Callable[[Mapping[str, Run]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    away = raising(NotHereError("there is no compiler"))
    broken = raising(TypeError("no array\nmore of it"))
    benchmarks_are({FIRST: broken, SECOND: away, THIRD: claiming(2.0)})
    assert runner.main(["all", "--quick", "--json"]) == 3
    said = capsys.readouterr()
    assert "Traceback" in said.err
    *lines, last = said.out.splitlines()
    assert lines[-7:] == [
        "ended in an error: 1",
        "  merge: TypeError: no array",
        "claims that do not hold: 1",
        "  values: FAILS  a figure: 2.00 (target <= 1.00)",
        "could not run: 1",
        "  hop: there is no compiler",
        "",
    ]
    told = json.loads(last)
    assert told["errors"] == {FIRST: "TypeError: no array"}
    assert told["left_out"] == {SECOND: "there is no compiler"}
    assert [result["benchmark"] for result in told["benchmarks"]] == [THIRD]


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        ([claiming(1.0), claiming(0.0)], 0),
        ([claiming(1.0), claiming(1.1)], 1),
        ([claiming(1.0), claiming(None)], 1),
        ([claiming(1.0), raising(NotHereError("no data"))], 1),
        ([claiming(1.1), raising(ImportError("no module"))], 3),
        ([raising(AssertionError())], 3),
    ],
)
def test_the_exit_code_says_the_worst_end(
    benchmarks_are: Callable[[Mapping[str, Run]], None], runs: list[Run], code: int
) -> None:
    named = dict(zip((FIRST, SECOND, THIRD), runs, strict=False))
    benchmarks_are(named)
    assert runner.main(list(named)) == code


@pytest.mark.parametrize("words", [["no-such"], ["merge", "--seeds", "0"], ["merge", "--fast"]])
def test_wrong_usage_exits_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        runner.main(words)
    assert ended.value.code == 2


def test_an_error_with_one_seed_ends_the_seeds_of_that_benchmark(
    benchmarks_are: Callable[[Mapping[str, Run]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def run(options: Options) -> Result:
        return (raising(ValueError("odd")) if options.seed == 2 else claiming(1.0))(options)

    benchmarks_are({FIRST: run, SECOND: claiming(0.5)})
    assert runner.main([FIRST, SECOND, "--seeds", "3", "--json"]) == 3
    out = capsys.readouterr().out
    assert "merge, seeds 1 to 1:\nholds on 1 of 1: a figure" in out
    assert "hop, seeds 1 to 3:\nholds on 3 of 3: a figure" in out
    assert json.loads(out.splitlines()[-1])["errors"] == {"merge, seed 2": "ValueError: odd"}


def test_windows_without_a_value_at_the_ends_are_left_out_of_drift_windows() -> None:
    told_ns = np.arange(40) * NS_PER_SECOND
    # Moved by 2 s the rows have a fifth window, which has no value as it is: a null.
    least, middle, _, most = of_operator(told_ns, np.arange(40.0), 2 * NS_PER_SECOND, like=told_ns)
    assert middle.tolist() == [14.5, 24.5]
    assert np.isfinite([least, most]).all()


def test_shed_saves_times_the_operator_that_has_no_shed() -> None:
    def build(stream: sw.Stream, shed: sw.shedding.EventShedding | None) -> sw.Stream:
        one = sw.patterns.event("one", where=sw.col("kind") == 1)
        two = sw.patterns.event("two", where=sw.col("kind") == 2)
        window = sw.patterns.opened_by(one, within="5s")
        return stream.pattern(sw.patterns.seq(one, two), window=window, shed=shed)

    rows = pa.table({"time": np.arange(200) * NS_PER_SECOND, "kind": np.arange(200) % 4})
    asked = Asked("pairs", rows, build)
    for shed in (None, sw.shedding.espice("1000h")):
        _, found, gone = timed(asked, reads_of(rows, 20), shed, None, 1)
        assert len(found) == 30  # a window each fourth event, of the last 60 %
        assert gone == 0
