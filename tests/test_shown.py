"""Building an error message never raises, and no value makes one long."""

from __future__ import annotations

import json
import re
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.report_file import load_report, save_report
from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.model.whose_code import where_raised
from slackwater.runtime.shown import MOST_SHOWN, a_kind, in_words, shown, text_of, trace_of
from slackwater.runtime.shown_rows import batch_shown, row_shown

Point = namedtuple("Point", "x y")
LONG = "a" * 5_000_000
NS = pa.timestamp("ns")


@dataclass
class Order:
    number: int
    parts: list[int]


class Broken:
    def __init__(self, worse: BaseException) -> None:
        self.worse = worse

    def __repr__(self) -> str:
        raise self.worse


class Unspeakable(Exception):
    def __init__(self, worse: BaseException) -> None:
        super().__init__()
        self.worse = worse

    def __str__(self) -> str:
        raise self.worse


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1.5, True, None, "a'b", b"\x00", Decimal("1.20"), datetime(2026, 1, 1, tzinfo=UTC)),
        *([], [1, "a"], (), (1,), (1, 2), set(), {1}, frozenset(), frozenset({2}), deque([1])),
        *({}, {"a": [1, {"b": None}]}, Point(1, "b"), Order(1, [2]), range(10**9), int),
    ],
    ids=repr,
)
def test_a_short_value_is_shown_as_python_writes_it(value: object) -> None:
    assert shown(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        *(LONG, LONG.encode(), bytearray(LONG.encode()), [LONG, LONG], {LONG: LONG}, 10**5_000),
        *(list(range(10**6)), dict.fromkeys(range(10**6)), defaultdict(int, {1: 2}), OrderedDict()),
        *(Point(LONG, 1), Order(1, list(range(10**6))), np.zeros(10**6), pa.nulls(10**6)),
        *(ValueError(LONG), pa.scalar([1] * 10**5), pa.scalar({"a": LONG}), "\n" * 500),
    ],
    ids=lambda one: type(one).__name__,
)
def test_no_value_is_long_nor_of_several_lines(value: object) -> None:
    assert 0 < len(shown(value)) <= MOST_SHOWN
    assert "\n" not in shown(value)


def test_a_container_that_holds_itself_or_doubles_ends() -> None:
    circle: list[Any] = []
    circle.append({"again": circle})
    doubled: list[Any] = []
    for _ in range(60):
        doubled = [doubled, doubled]
    assert "…" in shown(circle)
    assert "…" in shown(doubled)


WORSE = [ValueError("no"), KeyboardInterrupt(), SystemExit(3), RecursionError(), GeneratorExit()]


@pytest.mark.parametrize("worse", WORSE, ids=lambda one: type(one).__name__)
def test_whatever_repr_and_str_raise_is_said(worse: BaseException) -> None:
    kind = type(worse).__name__
    assert shown(Broken(worse)) == f"a Broken, whose __repr__ raised {kind}"
    assert f"a Broken, whose __repr__ raised {kind}" in shown([{"k": Broken(worse)}])
    assert in_words(Unspeakable(worse)).endswith(f"cannot be had (its __str__ raised {kind})")
    assert "Unspeakable" in trace_of(Unspeakable(worse), None)


class Looks(Exception):
    """Raises KeyError where Python asks for an attribute that is not there."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class Untrue(Exception):
    def __bool__(self) -> bool:
        raise ValueError("neither")


class Closed(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__", "__module__"):
            raise RuntimeError(name)
        return type.__getattribute__(cls, name)


class OfNameless(Exception, metaclass=Nameless):
    pass


def odd_syntax() -> SyntaxError:
    problem = SyntaxError("MARK")
    problem.lineno, problem.text, problem.filename = -3, "x", "\udcff"  # such as a parser sets
    return problem


ODD: dict[str, Callable[[], BaseException]] = {
    "looks": lambda: Looks("MARK"),
    "untrue": lambda: Untrue("MARK"),
    "closed": lambda: Closed("MARK"),
    "nameless": lambda: OfNameless("MARK"),
    "syntax": odd_syntax,
    "surrogate": lambda: ValueError("MARK \ud800"),
    "ours": lambda: sw.SlackwaterError("MARK \ud800"),
}


@pytest.mark.parametrize("on_error", ["error", "skip", "divert"])
@pytest.mark.parametrize("odd", ODD)
def test_whatever_exception_is_raised_keeps_its_step_and_line(odd: str, on_error: OnBad) -> None:
    def fails_here(row: Any) -> Any:
        raise sys.modules[__name__].ODD[odd]()  # some of their classes do not pickle

    flow = sw.Dataflow("odd")
    rows = flow.source("s", sw.table({"t": [1]}), event_time="t")
    mapped = rows.map_rows(fails_here, {"n": "int64"}, name="STEP", on_error=on_error)
    mapped.sink("out", sw.collect_sink())
    if on_error == "divert":
        mapped.diverted().sink("bad", sw.collect_sink())
    with sw.Simulation(nodes=1) as nodes:
        job = nodes.submit(flow)
        if on_error != "error":
            report = job.wait()
            assert json.dumps(report.to_json(), ensure_ascii=False).encode()
            assert str(report).encode()
            return
        with pytest.raises(OperatorError) as caught:
            job.wait()
    said = str(caught.value)
    assert re.search(r"(?s)^step 'STEP': its function raised .*MARK.*test_shown.*fails_here", said)
    assert said.encode()
    assert json.dumps(job.report().to_json(), ensure_ascii=False).encode()


def test_code_of_a_file_whose_name_is_no_utf8_is_named() -> None:
    def fails() -> None:
        raise KeyError("lat")

    code = fails.__code__.replace(co_filename="/a\udcff.py")
    try:
        FunctionType(code, {"KeyError": KeyError})()
    except KeyError as problem:
        at, lines = where_raised(problem)
    assert at.startswith(", at /a\\udcff.py, line ")
    assert re.search(r'"/a\\udcff.py", line \d+, in fails', lines)


def test_the_line_of_an_error_is_in_the_code_of_the_user() -> None:
    def reads() -> None:
        json.loads("{")

    try:
        reads()
    except json.JSONDecodeError as problem:
        at, lines = where_raised(problem)
    line = reads.__code__.co_firstlineno + 1
    assert at == f", at {reads.__code__.co_filename}, line {line}"
    assert "decoder.py" in lines


def test_code_of_a_library_alone_is_named_by_its_own_line() -> None:
    try:
        json.loads("{")
    except json.JSONDecodeError as problem:
        at, _ = where_raised(problem)
    assert "json" in at


def test_a_class_is_said_with_its_article() -> None:
    values = (3, "x", None, [], np.uint8(1), OSError())
    said = ["an int", "a str", "None", "a list", "a uint8", "an OSError"]
    assert [a_kind(value) for value in values] == said


def test_a_name_that_is_no_utf8_is_in_a_report_on_disk(tmp_path: Path) -> None:
    flow = sw.Dataflow("odd")
    flow.source("s", sw.table({"t": [1]}), event_time="t").sink("out", sw.collect_sink())
    with sw.Simulation(nodes=1) as nodes:
        report = nodes.submit(flow).wait()
    report.notes = ["file a\udcff.csv"]
    save_report(report, tmp_path / "report.json")
    assert load_report(tmp_path / "report.json").notes == ["file a\udcff.csv"]


def test_an_exception_is_its_class_and_its_text() -> None:
    assert in_words(KeyError("lat")) == "KeyError: 'lat'"
    assert (in_words(ValueError()), text_of(ValueError())) == ("ValueError", "ValueError")
    assert text_of(ValueError("ValueError: twice")) == "ValueError: twice"
    assert len(in_words(ValueError(LONG))) < 2_100


VALUES: dict[str, tuple[pa.DataType, Any, str]] = {
    "time": (NS, 1, "1970-01-01T00:00:00.000000001"),
    "zone": (pa.timestamp("ns", "Asia/Tokyo"), 1, "1970-01-01T00:00:00.000000001Z"),
    "far": (pa.timestamp("s"), 2**40, "36812-02-20T00:36:16"),
    "span": (pa.duration("ns"), 5, "5 ns"),
    "clock": (pa.time64("ns"), 7, "00:00:00.000000007"),
    "day": (pa.date32(), 2**31 - 1, "5881580-07-11"),
    "list": (pa.list_(NS), [1, None], "[1970-01-01T00:00:00.000000001, None]"),
    "fixed": (pa.list_(pa.duration("ns"), 1), [3], "[3 ns]"),
    "struct": (pa.struct([("a", NS)]), {"a": 1}, "{'a': 1970-01-01T00:00:00.000000001}"),
    "map": (pa.map_(pa.string(), NS), [("k", 1)], "{'k': 1970-01-01T00:00:00.000000001}"),
    "cents": (pa.decimal128(5, 2), Decimal("1.50"), "Decimal('1.50')"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_cell_of_any_type_is_shown_without_pandas(name: str) -> None:
    kind, value, says = VALUES[name]
    rows = pa.record_batch({"x": pa.array([value, None], kind)})
    assert batch_shown(rows, 3) == f"[{{'x': {says}}}, {{'x': None}}]"


def test_extension_dictionary_and_damaged_values_are_shown_too() -> None:
    coded = pa.array([1], NS).dictionary_encode()
    ext = pa.array([b"0" * 16], pa.uuid())
    damaged = pa.StringArray.from_buffers(
        1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")
    )
    text = row_shown({"coded": coded, "ext": ext, "damaged": damaged}, 0)
    assert "'coded': 1970-01-01T00:00:00.000000001" in text
    assert "'ext': b'0000000000000000'" in text
    assert "'damaged': a string that cannot be shown" in text


def test_a_row_of_many_columns_counts_the_rest() -> None:
    wide = {f"c{place}": np.zeros(1) for place in range(5_000)}
    assert "more}" in row_shown(wide, 0)
    assert len(row_shown(wide, 0)) < 2_500


def raises_long(_: pa.RecordBatch) -> None:
    raise ValueError(f"begins {LONG} ends")


def test_a_long_text_of_users_code_is_cut_and_stands_once() -> None:
    flow = sw.Dataflow("long")
    rows = flow.source("s", sw.table({"t": [1]}), event_time="t")
    rows.sink("out", sw.callback_sink(raises_long))
    with sw.Simulation(nodes=1) as nodes, pytest.raises(sw.SlackwaterError) as caught:
        nodes.submit(flow).wait()
    said = str(caught.value)
    assert len(said) < 5_000
    assert said.startswith("sink 'out': its callback raised ValueError: begins aaa")
    assert "in raises_long" in said


@pytest.mark.parametrize("kind", ["list", "struct", "map"])
def test_a_callbacks_own_error_comes_out_whatever_its_rows(kind: str) -> None:
    values = pa.array([VALUES[kind][1]], VALUES[kind][0])
    flow = sw.Dataflow("own")
    table = pa.table({"t": pa.array([1]), "x": values})
    rows = flow.source("s", sw.table(table), event_time="t")

    def fails(_: pa.RecordBatch) -> None:
        raise LookupError("no such stop")

    rows.sink("out", sw.callback_sink(fails))
    with sw.Simulation(nodes=1) as nodes, pytest.raises(sw.SlackwaterError) as caught:
        nodes.submit(flow).wait()
    assert "LookupError: no such stop" in str(caught.value)
    assert VALUES[kind][2] in str(caught.value)


def test_a_bad_argument_of_any_kind_is_refused_in_words() -> None:
    for value in (Broken(KeyboardInterrupt()), LONG, [LONG]):
        with pytest.raises(sw.SlackwaterError) as caught:
            sw.Dataflow("x", slack=value)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 600


class Key(Broken):
    __str__ = Broken.__repr__


@pytest.mark.parametrize("worse", WORSE, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("where", ["name", "value", "field", "row", "many", "long"])
def test_whatever_a_function_returns_is_refused_in_words(where: str, worse: BaseException) -> None:
    odd = Key(worse)
    returned: dict[str, Any] = {
        "name": {"n": {"a": 1}, odd: 2},
        "value": {"n": odd},
        "field": {"n": {odd: 1}},
        "row": odd,
        "many": {str(number): number for number in range(50_000)},
        "long": {"n": LONG},
    }
    flow = sw.Dataflow("odd")
    rows = flow.source("s", sw.table({"t": [1]}), event_time="t")
    struct = pa.struct([("a", pa.int64())])
    made = rows.map_rows(lambda _: returned[where], {"n": struct}, name="odd-step")
    made.sink("out", sw.collect_sink())
    with sw.Simulation(nodes=1) as nodes, pytest.raises(OperatorError) as caught:
        nodes.submit(flow).wait()
    assert str(caught.value).startswith("step 'odd-step'")
    assert len(str(caught.value)) < 3_000


HIDDEN = {
    "__repr__": lambda value: f"{type(value).__name__}(password=…)",
    "__module__": __name__,
}


@pytest.mark.parametrize("base", [dict, list, set, frozenset, tuple, deque, Point, OrderedDict])
def test_a_collection_that_writes_itself_is_shown_as_it_does(base: Any) -> None:
    kind = type("Login", (base,), HIDDEN)
    value = kind(1, "secret") if base is Point else kind([("a", "secret")])
    for around in (value, [value], {"k": value}, (value,)):
        assert "secret" not in shown(around)
        assert "Login(password=…)" in shown(around)
    plain = type("Plain", (base,), {})
    same = plain(1, "seen") if base is Point else plain([("a", "seen")])
    assert "seen" in shown(same)


def test_a_typed_named_tuple_may_write_itself() -> None:
    class Login(NamedTuple):
        user: str
        password: str

        def __repr__(self) -> str:
            return f"Login({self.user!r}, …)"

    assert shown([Login("a", "secret")]) == "[Login('a', …)]"
