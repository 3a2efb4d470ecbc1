"""Words of other libraries are answered with what to type, and what is advised runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime import other_names
from slackwater.runtime.expressions.result_types import type_named
from slackwater.runtime.other_names import ANSWERS, answer_to
from tests.support.tables import computed, result_of

OWN = {
    "stream": "stream",
    "keyed stream": "stream.key_by('key')",
    "expression": "sw.col('x')",
    "text": "sw.col('s').str",
    "list": "sw.col('v').list",
    "time": "sw.col('t').dt",
    "choice": "sw.when(sw.col('x') > 1).then('high')",
    "nodes": "sw.Simulation()",
    "job": "job",
    "call": "stream",
    "option": "stream",
}
"""{place: what a user has typed before the word}."""
CODE = re.compile(r"`([^`]+)`")


class MyClass:
    """Counts the rows of a key."""

    def __init__(self) -> None:
        self.n = 0

    def on_rows(self, _key: Any, rows: list[dict[str, Any]]) -> list[dict[str, int]]:
        self.n += len(rows)
        return [{"n": self.n}]


def names() -> dict[str, Any]:
    """Return what advice is typed beside: a flow, its streams, a job that is done."""
    flow = sw.Dataflow("f")
    rows = {"key": ["a", "b"], "s": ["p", "q"], "x": [1.0, 2.0], "y": [3.0, 4.0], "n": [1, 2]}
    of_means = {"mean_x": [1.0, 2.0], "mean_xx": [1.0, 4.0], "v": [[1], [2]]}
    times = {"t": [datetime(2026, 3, 1), datetime(2026, 3, 2)]}  # noqa: DTZ001 - without a zone
    data = sw.table({**rows, **of_means, **times})
    done = sw.Dataflow("done")
    done.source("rows", data, event_time="t").sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=1).submit(done)
    job.wait()
    low, high = (sw.patterns.event(name, where=sw.col("x") > 1) for name in "ab")
    return {
        "sw": sw,
        "flow": flow,
        "data": data,
        "job": job,
        "datetime": datetime,
        "stream": flow.source("stream", data, event_time="t"),
        "other": flow.source("other", data, event_time="t"),
        "a": low,
        "b": high,
        "MyClass": MyClass,
        "function": dict,
        "schema": {"x": "float64"},
    }


INF, NAN = float("inf"), float("nan")
NOON = datetime(2026, 7, 3, 12, 40, 1, 234567)  # noqa: DTZ001 - without a zone
"""A Friday of week 27."""
FLOATS, PAIRS = [1.5, INF, -INF, None], ([1.0, 1.0, None, None], [1.0, 2.0, 2.0, None])
COMPUTED: list[tuple[str, str, list[Any], list[Any]]] = [  # place, words, a column, what it gives
    ("module", "isnull", [1.0, None], [False, True]),
    ("module", "sqrt", [4.0], [2.0]),
    ("module", "log", [1.0], [0.0]),
    ("module", "exp", [0.0], [1.0]),
    ("module", "floor", [1.5], [1.0]),
    ("module", "ceil", [1.5], [2.0]),
    ("module", "sin", [0.0], [0.0]),
    ("module", "cos", [0.0], [1.0]),
    ("expression", "ln", [1.0], [0.0]),
    ("expression", "log1p", [0.0, 1.0], [0.0, math.log(2)]),
    ("expression", "expm1", [0.0, 1.0], [0.0, math.e - 1]),
    ("expression", "is_finite", FLOATS, [True, False, False, None]),
    ("expression", "is_infinite", FLOATS, [False, True, True, None]),
    ("expression", "is_inf", FLOATS, [False, True, True, None]),
    ("expression", "is_not_nan", [1.0, NAN], [True, False]),
    ("expression", "isnull", FLOATS, [False, False, False, True]),
    ("expression", "notnull", FLOATS, [True, True, True, False]),
    ("expression", "fill_nan", [1.0, NAN], [1.0, 0.0]),
    ("expression", "abs", [-1.0], [1.0]),
    ("expression", "neg", [-1.0], [1.0]),
    ("expression", "like", ["ab", "ba", "Ab"], [True, False, False]),
    ("expression", "ilike", ["ab", "ba", "Ab"], [True, False, True]),
    ("text", "lstrip", [" a "], ["a "]),
    ("text", "rstrip", [" a "], [" a"]),
    ("text", "strip_chars", [" a "], ["a"]),
    ("text", "match", ["ab", "ba"], [True, False]),
    ("text", "like", ["ab", "ba"], [True, False]),
    ("text", "ilike", ["Ab", "ba"], [True, False]),
    ("text", "fullmatch", ["a", "ab"], [True, False]),
    ("text", "find", ["a", "ba", "c"], [0, 1, -1]),
    ("text", "isdigit", ["12", "a1", ""], [True, False, False]),
    ("text", "isalpha", ["ab", "a1", ""], [True, False, False]),
    ("text", "title", ["ab cd"], ["Ab Cd"]),
    ("text", "capitalize", ["ab cd"], ["Ab cd"]),
    ("text", "zfill", ["12"], ["00012"]),
    ("text", "ljust", ["12"], ["12   "]),
    ("text", "reverse", ["ab"], ["ba"]),
    ("text", "right", ["abc"], ["bc"]),
    ("text", "left", ["abc"], ["ab"]),
    ("time", "replace_time_zone", [NOON], [NOON.replace(tzinfo=ZoneInfo("Europe/Berlin"))]),
    ("time", "convert_time_zone", [NOON], [NOON.replace(tzinfo=UTC)]),
    ("time", "round", [NOON], [NOON.replace(hour=13, minute=0, second=0, microsecond=0)]),
    ("time", "ceil", [NOON], [NOON.replace(hour=13, minute=0, second=0, microsecond=0)]),
    ("time", "floor", [NOON], [NOON.replace(minute=0, second=0, microsecond=0)]),
    ("time", "epoch", [NOON], [int(NOON.replace(tzinfo=UTC).timestamp())]),
    ("module", "unix_timestamp", [NOON], [int(NOON.replace(tzinfo=UTC).timestamp())]),
    (
        "module",
        "from_unixtime",
        [int(NOON.replace(tzinfo=UTC).timestamp())],
        [NOON.replace(microsecond=0)],
    ),
    ("time", "millisecond", [NOON], [234]),
    ("time", "microsecond", [NOON], [234_567]),
    ("time", "nanosecond", [NOON], [234_567_000]),
    ("time", "iso_weekday", [NOON], [NOON.isoweekday()]),
    ("time", "day_name", [NOON], ["Friday"]),
    ("time", "week", [NOON], ["27"]),
    ("time", "quarter", [NOON], [3]),
    ("time", "ordinal_day", [NOON], [NOON.timetuple().tm_yday]),
    *(("module", word, [NOON], [getattr(NOON, word)]) for word in ("year", "month", "day", "hour")),
    *(
        ("expression", word, [NOON], [getattr(NOON, word)])
        for word in ("year", "month", "day", "hour")
    ),
]


@pytest.mark.parametrize(
    ("place", "word", "column", "expected"), COMPUTED, ids=lambda value: str(value)[:20]
)
def test_what_an_answer_advises_computes_what_the_word_did(
    place: str, word: str, column: list[Any], expected: list[Any]
) -> None:
    said = ANSWERS[place][other_names._folded(word)]
    code = CODE.findall(said)[0]
    expression = eval(OWN[place] + code if code[0] == "." else code, {"sw": sw})  # noqa: S307
    found = computed(expression, **{name: pa.array(column) for name in expression.columns()})
    exact = not isinstance(expected[-1], float)
    assert found == (expected if exact else pytest.approx(expected))


@pytest.mark.parametrize(
    ("word", "expected"),
    [("eq_missing", [True, False, False, True]), ("ne_missing", [False, True, True, False])],
)
def test_an_equality_of_nulls_is_advised_with_nulls(word: str, expected: list[bool]) -> None:
    (code,) = CODE.findall(ANSWERS["expression"][other_names._folded(word)])
    found = computed(eval(code, {"sw": sw}), x=pa.array(PAIRS[0]), y=pa.array(PAIRS[1]))  # noqa: S307
    assert found == expected


def test_distinct_values_are_counted_by_window() -> None:
    (code,) = CODE.findall(ANSWERS["expression"][other_names._folded("n_unique")])
    at = pa.array([1, 9, 11, 12], pa.timestamp("s"))
    table = pa.table({"ts": at, "key": ["a"] * 4, "x": [5, 5, 5, 6]})
    found = result_of(lambda rows: eval(code, {"sw": sw, "stream": rows}), table, batch_rows=9)  # noqa: S307
    assert found["n"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("lag", [None, 5, None, 7]), ("lead", [7, 7, 8, None]), ("ffill", [5, 5, 7, 8])],
)
def test_a_row_before_or_after_is_a_step(word: str, expected: list[int | None]) -> None:
    (code,) = CODE.findall(ANSWERS["stream"][other_names._folded(word)])
    table = pa.table(
        {"ts": pa.array(range(4), pa.timestamp("s")), "key": ["a"] * 4, "x": [5, None, 7, 8]}
    )
    code = OWN["stream"] + code
    found = result_of(lambda rows: eval(code, {"sw": sw, "stream": rows}), table, batch_rows=9)  # noqa: S307
    assert found.column(found.num_columns - 1).to_pylist() == expected


def codes() -> list[tuple[str, str]]:
    found = {
        (place, code)
        for place, answers in ANSWERS.items()
        for said in answers.values()
        for code in CODE.findall(said)
    }
    return sorted(found)


@pytest.fixture(scope="module")
def beside() -> dict[str, Any]:
    return names()


def typed(place: str, code: str, beside: dict[str, Any]) -> Any:
    """Type what is advised, as a user would; run and check what comes of it."""
    if code.startswith("."):
        code = OWN[place] + code
    if "sw.csv('" in code or "sw.parquet('" in code or "sw.jsonl('" in code or "MyInput" in code:
        return compile(code, place, "eval")  # a file of the user's, or an input
    made = eval(code, {**beside})  # noqa: S307 - typed in, as a user would
    if place == "type":
        return type_named(made)
    if isinstance(made, sw.Expr):
        return beside["stream"].with_columns(made=made)
    return made


@pytest.mark.parametrize(("place", "code"), codes())
def test_what_an_answer_advises_runs(place: str, code: str, beside: dict[str, Any]) -> None:
    fresh = dict(beside)
    if any(call in code for call in (".sink(", ".submit(", ".source(")):
        fresh = names()
    if ".submit(" in code:
        fresh["stream"].sink("stream out", sw.collect_sink())
        fresh["other"].sink("other out", sw.collect_sink())
    typed(place, code, fresh)


def test_each_place_has_answers_and_none_is_of_a_name_that_is_there(
    beside: dict[str, Any],
) -> None:
    for place, own in {**OWN, "module": "sw", "flow": "flow", "aggregates": "sw.count()"}.items():
        if place in ("call", "option"):
            continue
        thing = eval(own, beside)  # noqa: S307 - as above
        assert ANSWERS[place]
        for name in dir(thing):
            said = answer_to(place, name) if name[0] != "_" else None
            assert said is None or f".{name}(" in said  # theirs is ours in another style


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sw.avg("x"), "slackwater has no 'avg'; write sw.mean('x')"),  # type: ignore[attr-defined]
        (lambda: sw.stddev("x"), "sw.std('x')"),  # type: ignore[attr-defined]
        (lambda: sw.session_window("10s"), "write sw.session('30m')"),  # type: ignore[attr-defined]
        (lambda: sw.colum("x"), "slackwater has no 'colum'; the nearest is 'col'"),  # type: ignore[attr-defined]
        (lambda: sw.col("x").is_in(1), "takes a list of values; write is_in([1])"),  # type: ignore[arg-type]
        (lambda: sw.col("x").is_in(), "missing a required argument: 'values'"),  # type: ignore[call-arg]
        (lambda: sw.col("x").abs(), "write abs(sw.col('x'))"),  # type: ignore[attr-defined]
        (lambda: sw.col("x").alias("y"), "write stream.with_columns(new=sw.col('x') * 2)"),  # type: ignore[attr-defined]
        (lambda: sw.col("x").over("k"), "it is a step: write stream.over(by='key'"),  # type: ignore[attr-defined]
        (lambda: sw.col("x").log(10), "too many positional arguments; it is log(); write"),  # type: ignore[call-arg]
        (lambda: sw.col("x").round("a"), "digits='a' must be a whole number"),  # type: ignore[arg-type]
        (lambda: sw.col("x").cast("bigint"), "there is no type 'bigint'; write 'int64'"),
        (lambda: sw.col("x").cast("varchar(20)"), "write 'string'"),
        (lambda: sw.col("x").cast(float), "is not a type; write 'float64'"),  # type: ignore[arg-type]
        (lambda: sw.csv("a.csv", types={"a": "bigint"}), "write 'int64'"),
        (lambda: sw.col("s").str[0:2], "a part is .slice(0, 2)"),  # type: ignore[index]
        (lambda: sw.col("s")[0:2], "write sw.col('s').str.slice(0, 2) of text"),  # type: ignore[index]
        (lambda: sw.col("v").list[0], "sw.col('v')[0]"),  # type: ignore[index]
        (lambda: sw.when(sw.col("x") > 1, 2), "write sw.when(sw.col('x') > 1).then('high')"),  # type: ignore[call-arg]
        (lambda: sw.when(sw.col("x") > 1).then(1).else_(2), "write .otherwise('low')"),  # type: ignore[attr-defined]
        (lambda: sw.sum("x") / sw.count(), "compute with the result, downstream"),
        (lambda: sw.sum("x").alias("y"), "write stream.aggregate("),  # type: ignore[attr-defined]
        (lambda: sw.Dataflow("f").execute(), "write sw.Simulation().submit(flow).wait()"),  # type: ignore[attr-defined]
        (lambda: sw.Simulation().run(1), "write .submit(flow).wait()"),  # type: ignore[attr-defined]
    ],
)
def test_a_mistake_of_another_librarys_user_says_what_to_type(
    call: Callable[[], Any], says: str
) -> None:
    with pytest.raises((AttributeError, TypeError, sw.SlackwaterError)) as raised:
        call()
    assert says in str(raised.value)


FOLLOWED_BY = (
    "pattern() has no option 'drift'; two steps in sequence allow for clocks that are off: write "
    ".followed_by(first="
)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("stream.head(3)", "write .limit(20); to look at rows .sink("),
        ("stream.tail(3)", "no last rows; the newest of each key is .newest("),
        ("stream.distinct()", "write .dedupe('key', within='1m')"),
        ("stream.union(other)", "where columns differ .merge(other, fill=True)"),
        ("stream.sort('x')", "gates put rows in the order of their event time"),
        ("stream.sql('select')", "there is no SQL: write .filter("),
        ("stream.groupBy('key')", "write .aggregate(by='key', window="),
        ("stream.withColumn('y', 1)", "write .with_columns(new=sw.col('x') * 2)"),
        ("stream.with_row_index()", "in a class of yours: write .process("),
        ("stream.left_join(other)", "write .join(other, on='key', within='5s', how='left')"),
        ("stream['x']", "a column is sw.col('x')"),
        ("stream.x > 1", "a stream has no 'x'; write sw.col('x')"),
        ("list(stream)", "rows come when the flow runs"),
        ("stream.key_by('key').window(1)", "the window is an argument: write .aggregate("),
        ("stream.key_by('key').reduce(1)", "write .aggregate("),
        ("stream.drop(['x'])", "write the names without the list, 'x'"),
        ("stream.drop(columns=['x'])", "write .drop('x', 's')"),
        ("stream.filter('x > 1')", "write it in Python, such as sw.col('speed') > 8"),
        ("stream.filter(sw.col('x') > 1, sw.col('x') < 2)", "conditions are one expression"),
        ("stream.with_columns(sw.col('x') + 1)", "names are arguments: write"),
        ("stream.join(other, on='key')", "write .join(other, on='key', within='5s')"),
        ("stream.join(other, on='key', within='5s', how='full')", "must be 'inner' or 'left'"),
        ("stream.pattern(sw.patterns.seq(a, b), within='1s', drift='5ms')", FOLLOWED_BY),
        (
            "sw.shedding.random_shedding('1s')",
            "sw.shedding has no 'random_shedding'; chance decides where nothing is ever ranked: "
            "write sw.shedding.espice('1s', drops='events', first=10**9)",
        ),
        (
            "sw.shedding.baseline_shedding('1s')",
            "write sw.shedding.espice('1s', drops='events'), or copy it",
        ),
        ("stream.key_by('key').pattern(a, within='1s', drift=None)", FOLLOWED_BY),
    ],
)
def test_a_stream_answers_such_a_mistake(code: str, says: str, beside: dict[str, Any]) -> None:
    with pytest.raises((AttributeError, TypeError, sw.SlackwaterError)) as raised:
        eval(code, {**beside})  # noqa: S307 - typed in, as a user would
    assert says in str(raised.value)


def test_no_place_has_two_answers_to_a_word() -> None:
    for place, rows in other_names._TABLE.items():
        words = [word for names in rows for word in names.split()]
        assert sorted(words) == sorted(set(words)), place


def test_a_word_in_any_style_is_one_word() -> None:
    assert len({answer_to("stream", word) for word in ("group_by", "groupBy", "GROUPBY")}) == 1
    assert answer_to("type", "DECIMAL(10, 2)") == answer_to("type", "decimal")
    assert answer_to("stream", "no such word") is None


def test_python_still_finds_out_what_a_stream_is_not(beside: dict[str, Any]) -> None:
    assert not hasattr(beside["stream"], "__array__")
    assert not isinstance(beside["stream"], Mapping)


def test_a_chosen_value_is_said_to_be_of_a_window() -> None:
    for word, ours in {"max_by": "arg_max", "min_by": "arg_min"}.items():
        with pytest.raises(AttributeError, match=f"in windows write sw.{ours}\\('key', 'x'\\)"):
            getattr(sw, word)
