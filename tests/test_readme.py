"""README.md as a reader uses it: each sample is run, and each output compared with what is printed.

All run in the simulator, where nothing depends on the machine: outputs are compared letter by
letter. Two exceptions, by rule: what a *model* learned (`model 32 rows/s`) hangs on the last bit of
a fit, so its figures are masked; and `…` on a page stands for anything.

What needs a cluster is read only: its commands and options must exist.
"""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import slackwater as sw
from docs.build_site import GROUPS, methods
from examples import hello
from examples.city import City, generate
from slackwater.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README_TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
README = BLOCK.findall(README_TEXT)  # [(kind, text)]
DEADLINES = BLOCK.findall((ROOT / "docs/deadlines.md").read_text(encoding="utf-8"))
LEARNED = re.compile(r"model\s[^)]*\)")

START = {  # how each block of the README begins: {start: the test that has it}
    "make demo": "the commands",
    "make setup": "the commands",
    "00:00 to": "hello",
    "import slackwater": "the flow",
    "137,214 in": "the flow",
    ".venv/bin/slackwater explain": "the commands, and the run",
    ". .venv/bin/activate": "the commands",
    'flow = sw.Dataflow("congestion", deadline': "the deadline",
    "Deadline 1.00 s": "the deadline's report",
    ".venv/bin/slackwater plan": "the commands before a run",
    "jams.sink(": "the sinks",
}

Typed = Callable[[str], str]


def block(start: str, blocks: list[tuple[str, str]] = README) -> str:
    found = [text for _, text in blocks if text.startswith(start)]
    assert len(found) == 1, f"{len(found)} blocks begin with {start!r}"
    return found[0]


def with_lines_of(fragment: str) -> str:
    """Return the README's flow with a fragment's lines, each in the place of its own kind.

    That is the line that begins alike, as far as the first bracket; `sw.Cluster.local(nodes=3)`
    becomes the simulator.
    """
    flow = block("import slackwater")
    for line in fragment.splitlines():
        start = line[: line.index("(") + 1]
        flow, changed = re.subn(rf"^( *){re.escape(start)}.*$", rf"\1{line}", flow, flags=re.M)
        assert changed == 1, f"the flow has {changed} lines that begin with {start}"
    assert flow.count("sw.Cluster.local(nodes=3)") == 1
    return flow.replace("sw.Cluster.local(nodes=3)", "sw.Simulation()")


def run(code: str) -> dict[str, object]:
    """Run a sample as a file of its own; return its names."""
    path = Path("sample.py")
    path.write_text(code, encoding="utf-8")
    return runpy.run_path(str(path))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def typed(folder: Path) -> Typed:
    """A reader's shell: types `slackwater …`, and returns what it printed."""

    def type_in(line: str) -> str:
        done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        is_none = done.stdout.startswith("none of 1 to")  # of nodes, on a machine that is too slow
        assert done.exit_code == int(is_none), f"{line}\n{done.output}"
        return done.stdout

    return type_in


def test_each_block_of_the_readme_is_in_a_test_of_this_file() -> None:
    unknown = [text for _, text in README if not text.startswith(tuple(START))]
    assert not unknown, f"add a test for {unknown}"
    assert len(README) == len(START)


def test_the_first_ten_lines_say_what_it_is_and_what_it_is_not_yet() -> None:
    first = "\n".join(README_TEXT.split("\n")[:10])
    for said in ("late and out of order", "rather than Flink or Bytewax", "does not do yet"):
        assert said in first


@pytest.mark.parametrize("term", ["gate", "slack", "slots", "ready-only"])
def test_a_term_is_explained_where_the_readme_first_says_it(term: str) -> None:
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", README_TEXT, flags=re.DOTALL)
    first = re.search(rf"(?<![\w-])\*?{term}s?\b\*?", text)
    assert first is not None
    assert first[0] == f"*{term}*"


def test_windows_and_joins_come_before_tables_of_options() -> None:
    assert README_TEXT.index("## Windows and joins") < README_TEXT.index("| you write |")


def test_the_table_of_steps_has_every_step_window_aggregate_input_and_output() -> None:
    table = README_TEXT.partition("\n| you want | you write |\n")[2].partition("\n\n")[0]
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", table))))
    steps = [name for name in methods(sw.Stream) if callable(getattr(sw.Stream, name))]
    names = {*steps, *GROUPS["Windows"], *GROUPS["Inputs"], *GROUPS["Outputs"]}
    assert sorted(names - words) == []


def test_hello_prints_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    hello.main()
    assert capsys.readouterr().out == block("00:00 to")


def test_the_command_beside_hello_is_hello() -> None:
    assert f"-m {hello.__name__}\n" in block("make setup")


def test_the_flow_prints_the_ledger_that_the_readme_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate(City(), folder / "city")  # what `python -m examples.city city` does
    run(with_lines_of(""))
    assert capsys.readouterr().out == block("137,214 in")


def test_the_flow_runs_under_the_deadline_of_the_readme(folder: Path) -> None:
    generate(City(seconds=10), folder / "city")
    report = run(with_lines_of(block('flow = sw.Dataflow("congestion", deadline')))["report"]
    assert isinstance(report, sw.JobReport)
    assert report.tuning is not None
    assert report.tuning.deadline_ns == 6_000_000_000


def test_the_sinks_of_the_readme_write_the_same_rows(folder: Path) -> None:
    generate(City(seconds=10), folder / "city")
    lines = block("jams.sink(").splitlines()
    assert len(lines) == 2
    row_counts = set()
    for number, line in enumerate(lines):
        assert line.count('"out/jams"') == 1
        report = run(with_lines_of(line.replace("out/jams", f"out/{number}")))["report"]
        assert isinstance(report, sw.JobReport)
        assert list((folder / f"out/{number}").glob("*.parquet"))
        row_counts.add(report.sinks[0].rows)
    assert len(row_counts) == 1
    assert row_counts != {0}


def test_the_commands_on_the_examples_run(folder: Path, typed: Typed) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    text = block(".venv/bin/slackwater explain").replace("--nodes 3", "--simulate")
    explained, ran, status, report = (typed(line) for line in text.splitlines())
    assert "congestion" in explained
    assert "Ledger" in ran
    for said in (status, report):  # the newest run is the one just made
        assert said.splitlines()[:3] == ran.splitlines()[:3]


def test_a_flow_is_planned_and_provisioned_as_the_readme_says(folder: Path, typed: Typed) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    planned, provided = map(typed, block(".venv/bin/slackwater plan").splitlines())
    assert "nothing was run on the nodes" in planned
    assert "bottleneck  node-" in planned
    assert re.match(r"1 node keeps|\d+ nodes keep|none of 1 to", provided)
    assert not (folder / "out").exists()


def test_every_command_of_the_readme_exists_with_its_options() -> None:
    words = [shlex.split(line, comments=True) for kind, text in README for line in text.split("\n")
             if kind == "sh"]  # fmt: skip
    commands = [
        rest for program, *rest in filter(None, words) if Path(program).name == "slackwater"
    ]
    known = typer.main.get_command(app)
    for name, *options in commands:
        command = known.commands[name]  # type: ignore[attr-defined]
        command.make_context(name, options)  # reads them, runs nothing
    assert len(commands) >= 6


def test_every_target_that_the_readme_tells_to_make_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    missing = [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)]
    assert {"demo", "test"} <= targets
    assert not missing


@pytest.mark.timeout(300)  # 13 s of CPU, models and all: on a busy machine minutes
def test_the_report_of_a_deadline_is_that_of_the_readme_and_of_its_page(
    folder: Path, typed: Typed
) -> None:
    Path("slow_buses.py").write_text(block("import numpy", DEADLINES), encoding="utf-8")
    ran = typed(block("slackwater run slow_buses.py", DEADLINES))
    assert block("Deadline 1.00 s") in ran
    shown = LEARNED.sub("model)", block("Deadline 1.00 s", DEADLINES))
    pattern = r"\s+".join(map(re.escape, shown.split())).replace("…", ".*")
    assert re.search(pattern, LEARNED.sub("model)", ran), re.DOTALL), ran
