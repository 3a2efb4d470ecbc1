"""How the flow is found in a user's file, and what lies beside that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.fake_host import FLOW, FakeHost, call, write
from tests.support.typed import FLOW as FLOW_OF_ROWS


@pytest.mark.parametrize(
    ("code", "target", "name"),
    [
        ("flow = Flow('a')\nother = Flow('b')", "city.py", "a"),
        ("flow = Flow('a')\nother = Flow('b')", "city.py:other", "b"),
        ("only = Flow('a')", "city.py", "a"),
        ("def build(n=1):\n    return Flow(f'built-{n}')", "city.py", "built-1"),
        ("def make():\n    return Flow('made')", "city.py:make", "made"),
        ("one = two = Flow('a')", "city.py", "a"),
    ],
)
def test_the_flow_is_found(host: FakeHost, code: str, target: str, name: str) -> None:
    write(code)
    assert call("explain", target).stdout == f"graph of {name}\n"


@pytest.mark.parametrize(
    ("code", "target", "told"),
    [
        ("", "city.py", "has no dataflow; write"),
        (
            "a = Flow('a')\nb = Flow('b')",
            "city.py",
            "several dataflows (a, b); name one: city.py:a",
        ),
        ("flow = Flow('a')", "city.py:flaw", "has no 'flaw'; the nearest is 'flow'"),
        ("flow = 3", "city.py:flow", "is of type int; name a dataflow"),
        ("flow = 3", "city.py:y", "has no 'y', and no dataflow; write"),
        ("def build():\n    pass", "city.py:y", "has no 'y'; there are: build"),
        ("def build(path):\n    pass", "city.py", "without arguments (missing a required argument"),
        ("def build():\n    pass", "city.py", "returned None; it must return a Dataflow"),
        ("import sys\nsys.exit(3)", "city.py", "stopped with SystemExit"),
        ("import no_such_module", "city.py", "No module named 'no_such_module'"),
        ("x = = 3", "city.py", "SyntaxError"),
    ],
)
def test_a_file_without_a_usable_flow_is_told_plainly(
    host: FakeHost, code: str, target: str, told: str
) -> None:
    write(code)
    done = call("run", target)
    assert done.exit_code == 1
    assert told in done.stderr
    assert not host.submitted


def test_an_error_in_the_users_file_shows_their_traceback_and_none_of_ours(
    host: FakeHost,
) -> None:
    write("def half():\n    return 1 / 0\nflow = Flow(half())")
    done = call("run", "city.py")
    assert "ZeroDivisionError" in done.stderr
    assert "return 1 / 0" in done.stderr
    assert "userfile.py" not in done.stderr


def test_an_error_of_ours_in_the_users_file_names_its_line(host: FakeHost) -> None:
    write("from slackwater.runtime.errors import ColumnError\nraise ColumnError('no column sped')")
    line = Path("city.py").read_text().splitlines().index("raise ColumnError('no column sped')")
    assert call("explain", "city.py").stderr == (
        f"slackwater: no column sped\n(city.py, line {line + 1})\n"
    )


def test_a_flow_may_live_in_a_file_named_like_a_module(host: FakeHost) -> None:
    Path("random.py").write_text(FLOW + "flow = Flow('dice')")
    before = sys.modules.get("random")
    assert call("explain", "random.py").stdout == "graph of dice\n"
    assert sys.modules.get("random") is before


def test_a_flow_may_import_the_modules_beside_it(host: FakeHost) -> None:
    Path("beside_the_city.py").write_text("NAME = 'near'")
    write("from beside_the_city import NAME\nflow = Flow(NAME)")
    assert call("explain", "city.py").stdout == "graph of near\n"


def test_what_lies_beside_a_flow_elsewhere_is_found_as_if_python_ran_the_file(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray has its workers import from the folder of the script, if that is on our own path."""
    monkeypatch.setattr(sys, "argv", ["slackwater", "run"])
    Path("elsewhere").mkdir()
    Path("elsewhere/near_the_flow.py").write_text("NAME = 'near'")
    Path("elsewhere/moved.py").write_text(
        FLOW + "from near_the_flow import NAME\nflow = Flow(NAME)"
    )
    assert call("explain", "elsewhere/moved.py").stdout == "graph of near\n"
    assert Path(sys.argv[0]) == Path("elsewhere/moved.py").resolve()
    assert str(Path(sys.argv[0]).parent) in sys.path


def test_a_flow_may_import_from_the_project_one_stands_in(host: FakeHost) -> None:
    for folder in ("project_here", "flows"):
        Path(folder).mkdir()
    Path("project_here/names.py").write_text("NAME = 'here'")
    Path("flows/city.py").write_text(
        FLOW + "from project_here.names import NAME\nflow = Flow(NAME)"
    )
    assert call("explain", "flows/city.py").stdout == "graph of here\n"


def test_a_lock_at_the_top_of_the_file_is_refused_in_the_simulator_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.chdir(tmp_path)
    Path("locked_flow.py").write_text(
        "import threading\n"
        + FLOW_OF_ROWS
        + "LOCK = threading.Lock()\n"
        + "def own(row):\n    with LOCK:\n        return {'n': row['n']}\n"
        + "rows.map_rows(own, {'n': 'int64'}, name='own').sink('x', sw.collect_sink())\n"
    )
    done = call("run", "locked_flow.py", "--simulate", "--quiet")
    assert done.exit_code == 1
    assert "the function of step 'own' (own) does not pickle because of 'LOCK'" in done.output
