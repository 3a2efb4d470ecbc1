"""Pages for the first hour, as a reader types them; `tests/system` types the one on nodes."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.runtime.flow.dataflow import SourceOptions
from tests.support.typed_pages import alike, blocks, typed
from tests.support.warm_python import warm_python

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIMULATED = ("tutorial", "tutorial-windows", "tutorial-late-events")
OTHERS = ("testing-a-flow", "coming-from", "recipes")
MAKE_FILES = "python data.py"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A `python` that need not import for a second what each page imports."""
    with warm_python(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


@pytest.mark.timeout(300)  # each command is a process of its own, on a busy machine of seconds
@pytest.mark.parametrize("name", SIMULATED)
def test_a_page_of_the_tutorial_prints_what_it_shows(
    name: str, tmp_path: Path, programs: Path
) -> None:
    if name != "tutorial":
        assert not typed(DOCS / "tutorial.md", tmp_path, only=MAKE_FILES, programs=programs)
    differences = typed(DOCS / f"{name}.md", tmp_path, programs=programs)
    assert not differences, "\n\n".join(differences)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", OTHERS)
def test_a_page_prints_what_it_shows(name: str, tmp_path: Path, programs: Path) -> None:
    differences = typed(DOCS / f"{name}.md", tmp_path, programs=programs)
    assert not differences, "\n\n".join(differences)


@pytest.mark.parametrize("name", [*SIMULATED, *OTHERS, "tutorial-nodes"])
def test_each_command_has_its_output(name: str) -> None:
    page = blocks(DOCS / f"{name}.md")
    commands = [i for i, block in enumerate(page) if block.kind == "sh"]
    assert commands
    assert [page[i + 1].kind for i in commands] == ["text"] * len(commands)


def test_the_pages_lead_from_one_to_the_next() -> None:
    names = [*SIMULATED, "tutorial-nodes"]
    for name, following in itertools.pairwise(names):
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        assert text.rstrip().split("\n")[-1].endswith(f"]({following}.md).")


@pytest.mark.parametrize(
    ("name", "first"),
    [("coming-from", "Flink"), ("coming-from-sql", "SQL"), ("coming-from-python", "Beam")],
)
def test_what_a_page_for_users_of_others_says_to_write_is_there(name: str, first: str) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    tables = page.partition(f"\n## {first}\n")[2]
    ours = "".join(re.findall(r"^\| .+? \|(.+)\|$", tables, re.MULTILINE))
    places = (sw, sw.Stream, sw.Dataflow, sw.Cluster)
    calls = [call for place in places for _, call in inspect.getmembers(place, inspect.isfunction)]
    known = {*SourceOptions.__annotations__, *inspect.signature(sw.Dataflow).parameters}
    for call in calls:
        known |= inspect.signature(call).parameters.keys()
    words = re.findall(r"(\w+)=", ours)
    assert len(words) > 30
    assert set(words) - known <= {"n"}  # the name of a column that is made
    for path in re.findall(r"\bsw\.([\w.]+)", page):
        found = sw
        for part in path.split("."):
            found = getattr(found, part)


PAGE = """
```python title="one.py"
import sys
print("rows:", 1 + 1)
if sys.argv[1:]:
    raise ValueError("too many")
```

```sh
python one.py
```

```text
rows: SHOWN
```

```sh
python one.py more
```

```text
…
FAILS
```
"""


@pytest.mark.parametrize(
    ("shown", "fails", "differ"),
    [
        ("2", "ValueError: too many", []),
        ("…", "ValueError: too …", []),
        ("3", "ValueError: too many", ["page.md:9: python one.py"]),
        ("2", "ValueError: too few", ["page.md:17: python one.py more"]),
        ("2", "rows: 2", ["page.md:17: python one.py more"]),
    ],
)
def test_a_page_that_shows_what_is_not_printed_is_found(
    shown: str, fails: str, differ: list[str], tmp_path: Path, programs: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("SHOWN", shown).replace("FAILS", fails), encoding="utf-8")
    differences = typed(page, tmp_path, programs=programs)
    assert [one.split("\n")[0] for one in differences] == differ
    assert not typed(page, tmp_path, only="no such command")


def test_three_dots_stand_for_anything_and_the_rest_for_itself() -> None:
    assert alike("a\nb\nc\n", "a\n…\nc")
    assert alike("worst 4.95 s", "worst … s")
    assert not alike("a\nb\nc\nd\n", "a\n…\nc")
    assert not alike("a+b", "aab")
