"""An operator is one folder and its line in the registry: nobody else knows which there are."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa
import pytest

from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import READY_ONLY, ReleaseRule
from slackwater.runtime.operators.merge.merge import MergeStep
from slackwater.runtime.plan.step import EachRowStep, GatedStep, Step
from slackwater.runtime.plan.steps import GateStep, LateStep, SinkStep, SourceStep
from slackwater.runtime.plan.traits import StepTraits, each_row
from slackwater.runtime.registry.operators import MACHINES, FlowMethods, StreamMethods

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = ROOT / "runtime/operators"
HOMES = (
    *(one for one in HOME.iterdir() if one.is_dir() and one.name != "ground"),
    ROOT / "runtime/patterns/operator",
    ROOT / "runtime/shedding/wrapper",
)
WORDS = {  # that are no operators: threads are joined, computers have processes, settings merge
    "actors/jobs/carrier.py": {"join"},
    "actors/jobs/replacing.py": {"join"},
    "actors/jobs/slot_actors.py": {"join"},
    "actors/slot/actor.py": {"join"},
    "actors/nodes/host_monitor.py": {"silence"},
    "actors/tuning/process.py": {"process"},
    "runtime/foresight/predicted/replica_worth.py": {"limit"},
    "runtime/order/sequence.py": {"merge"},
    "runtime/plan/canonical.py": {"combine"},
    "slackwater/report/run_status.py": {"process"},
}
NO_COLUMNS = pa.schema([])


@cache
def kinds() -> dict[str, str]:
    """Return {word in reports and `explain`: name of the step's class}."""
    return {kind_of(step): step.__name__ for step in MACHINES}


def kind_of(step: type[Step]) -> str:
    written = re.search(r'kind="(\w+)"|each_row\("(\w+)"', inspect.getsource(step))
    assert written is not None, f"{step.__name__} writes its kind as text"
    return written[1] or written[2]


@cache
def classes() -> frozenset[str]:
    """Return the names of the classes of operators: their steps, machines and methods."""
    methods = {*StreamMethods.__mro__, *FlowMethods.__mro__}
    machines = MACHINES.values()
    named = [*MACHINES, *machines, *methods]
    return frozenset(
        one.__name__
        for one in named
        if re.match(
            r"slackwater\.runtime\.(operators\.(?!ground)|patterns\.operator)", one.__module__
        )
    ) - {"StreamMethods", "FlowMethods"}


def elsewhere() -> Iterator[Path]:
    for package in ("runtime", "actors", "slackwater"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.parent not in HOMES and path != ROOT / "runtime/registry/operators.py":
                yield path


def docstrings(tree: ast.AST) -> set[ast.AST]:
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def names_of_operators(source: str, *, words: Collection[str] = ()) -> list[str]:
    """Return what a file names of operators in its code: their classes, and kinds as text."""
    tree, found, known = ast.parse(source), [], classes()
    texts = docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if name.rpartition(".")[2] in known:
                    found.append(name)
            case ast.Constant(value=str() as text) if node not in texts:
                if text in kinds() and text not in words:
                    found.append(text)
    return found


def test_no_other_file_names_an_operator() -> None:
    named: dict[str, list[str]] = {}
    for path in elsewhere():
        name, source = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        if found := names_of_operators(source, words=WORDS.get(name, ())):
            named[name] = found
    assert not named


@pytest.mark.parametrize(
    "source",
    [
        "from slackwater.runtime.operators.aggregate.step import AggregateStep",
        "x = steps.JoinStep",
        "isinstance(step, MapRowsStep)",
        "GATED = {'merge', 'gate'}",
        "if stage.kind == 'aggregate': pass",
        "Joining.join",
    ],
)
def test_the_rule_sees_an_operator_however_it_is_named(source: str) -> None:
    assert names_of_operators(source)


def test_the_rule_lets_words_go_by() -> None:
    assert not names_of_operators('"""A join."""\ngate.kind == "gate"\nprint("a join of two")')


def test_every_step_with_traits_is_registered() -> None:
    written = {
        node.name
        for home in HOMES
        for path in home.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(one, ast.FunctionDef) and one.name == "traits" for one in node.body)
    }
    assert {step.__name__ for step in MACHINES} == written


def test_kinds_are_told_apart() -> None:
    assert len(kinds()) == len(MACHINES)


@pytest.mark.parametrize("kind", [Step, EachRowStep, GatedStep])
def test_a_step_that_leaves_something_out_is_refused_as_the_flow_is_built(
    kind: type[Step],
) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Half(kind):  # type: ignore[valid-type, misc]
        @property
        def traits(self) -> StepTraits:
            return each_row("half")

    with pytest.raises(FlowError, match=r"is not a whole step yet: .*\bexplained\b.*\breads\b"):
        Half(name="half", inputs=("rows",), schema=NO_COLUMNS)


def test_no_step_takes_its_traits_from_a_base() -> None:
    assert Step.__abstractmethods__ == {"explained", "reads", "traits"}
    assert not [step for step in MACHINES if "traits" not in vars(step)]


def test_a_step_whose_traits_have_another_release_is_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Forgets(MergeStep):
        @cached_property
        def traits(self) -> StepTraits:
            return replace(super().traits, release=READY_ONLY)

    with pytest.raises(FlowError, match="give StepTraits release="):
        Forgets(name="all", inputs=("rows",), schema=NO_COLUMNS, release=ReleaseRule.slack(5))


def test_what_no_operator_is_is_whole_too() -> None:
    for step in (SourceStep, SinkStep, LateStep, GateStep):
        assert not getattr(step, "__abstractmethods__", None)
