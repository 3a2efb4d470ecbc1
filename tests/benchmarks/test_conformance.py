"""Foreign suites: verdicts are pinned, each is tried, and the page says what is pinned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.conformance.cases import Case, Suite, cells, differences
from benchmarks.conformance.ksql import KSQL, TESTS, with_checkout
from benchmarks.conformance.page import page
from benchmarks.conformance.run import SUITES, cases_here, suite_of
from benchmarks.frame import NotHereError

ROOT = Path(__file__).resolve().parents[2]
CASE = Case("a", "toys", "somewhere", [1, 2], [[1], [2]], Path())


def toys() -> Suite:
    """Return a suite that gives the rows of its cases."""
    suite = Suite("toys")
    suite.translation("a")(lambda case: [[row] for row in case.input])
    return suite


def test_equal_rows_in_another_order_are_equal() -> None:
    assert toys().verdict(CASE) == "equal"
    assert not toys().problem(replace(CASE, expected=[[2], [1]]))


@pytest.mark.parametrize("expected", [[[1]], [[1], [2], [2]], [[1], [3]], []])
def test_rows_that_are_not_pinned_are_a_problem(expected: list[list[int]]) -> None:
    assert toys().problem(replace(CASE, expected=expected)).startswith("a: ")


def test_a_difference_is_right_only_while_its_rows_are_those_that_are_pinned() -> None:
    suite = toys()
    suite.differs("a", "there is a reason", extra=["2"], lacking=[1])
    assert suite.verdict(CASE) == "different"
    assert not suite.problem(replace(CASE, expected=[[1], [3]]))
    assert "no difference any more" in suite.problem(CASE)
    assert "theirs alone ['3', '4']" in suite.problem(replace(CASE, expected=[[1], [3], [4]]))


def test_a_translation_that_raises_is_a_problem() -> None:
    assert "TypeError" in toys().problem(replace(CASE, input=None))


def test_a_case_without_a_translation_says_what_is_missing_or_that_nothing_was_tried() -> None:
    suite = Suite("toys")
    assert suite.verdict(CASE) == "not translated"
    suite.lacks("a clock", "a")
    assert suite.verdict(CASE) == "not expressible"


def test_a_case_whose_rows_are_elsewhere_is_not_here() -> None:
    assert CASE.is_here
    assert not replace(CASE, input="in the source").is_here


def test_rows_are_compared_as_text_that_says_equal_things_alike() -> None:
    assert cells([1.0, None, "a  b", True]) == cells("1.0 NULL a b true") == "1 NULL a b true"
    assert cells(["08:00:01.500"]) == cells(["08:00:01.5"])
    assert differences([[0.1 + 0.2]], [[0.3]]) == ([], [])


def test_without_data_it_says_how_to_name_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/nowhere")
    with pytest.raises(NotHereError, match=r"DATA=/nowhere has no cases\.json"):
        cases_here()


def test_rows_of_ksqldb_are_those_of_a_checkout_and_absent_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "confluentinc/ksql 1 query-validation-tests/windows.json: count: all"
    case = Case("ksql-a", KSQL.name, source, "in the source", "in the source", Path())
    monkeypatch.delenv("KSQLDB", raising=False)
    assert with_checkout([case, CASE]) == [case, CASE]
    window = {"start": 0, "end": 2, "type": "time"}
    outputs = [
        {"topic": "OUT", "key": 1, "value": value, "window": window} for value in ({"N": 1}, "2,x")
    ]
    tests = [{"name": "count: all", "inputs": [{"topic": "IN"}], "outputs": outputs}]
    (tmp_path / TESTS).mkdir(parents=True)
    (tmp_path / TESTS / "windows.json").write_text(json.dumps({"tests": tests}))
    monkeypatch.setenv("KSQLDB", str(tmp_path))
    (there, _) = with_checkout([case, CASE])
    assert there.is_here
    assert there.input == [{"topic": "IN"}]
    assert [cells(row) for row in KSQL.answer(there)] == ["1 0 2 2 x"]  # of a window the last


def test_a_folder_that_is_not_a_checkout_of_ksqldb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KSQLDB", str(tmp_path))
    with pytest.raises(NotHereError, match="name a checkout of confluentinc/ksql"):
        with_checkout([CASE])


@pytest.mark.data
@pytest.mark.parametrize("name", SUITES)
def test_each_translation_gives_the_rows_that_its_verdict_says(name: str) -> None:
    suite = SUITES[name]
    cases = {case.name: case for case in cases_here() if case.suite == name}
    assert suite.translations.keys() | suite.missing.keys() <= cases.keys()
    assert not suite.translations.keys() & suite.missing.keys()
    assert suite.differences.keys() | suite.wrong.keys() <= suite.translations.keys()
    problems = [suite.problem(cases[each]) for each in suite.translations if cases[each].is_here]
    assert not list(filter(None, problems))


@pytest.mark.data
def test_the_page_says_what_is_pinned() -> None:
    text = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
    again = "write it: PAGE=docs/conformance.md python -m benchmarks conformance"
    assert text == page(cases_here(), suite_of), again
