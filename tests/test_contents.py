"""Contents pages are made from the files: lists in `__init__.py`, and the list of decisions.

python tests/test_contents.py

writes them. An entry is a file and the first line of its docstring, or the title of its page. The
other contents pages of docs are ordered by hand; each page has its link there.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("runtime", "actors", "ingest", "slackwater", "benchmarks")
LIST = re.compile(r"^(?:\| (?:file|page|room) \|.*|- `[\w/.]+`: .*)\n(?:(?!\n|\"\"\").*\n)*", re.M)
"""The list of a docstring: the entries that were made, or a table that is to be replaced."""
WIDTH = 100
DECISIONS = ROOT / "docs/decisions"
INDEX = DECISIONS / "README.md"
FOLDERS_OF_PAGES = ("", "operators", "inputs", "outputs", "papers", "benchmarks")


def lists() -> list[Path]:
    """Return the `__init__.py` files that have a list."""
    return [
        path
        for package in CODE
        for path in sorted((ROOT / package).rglob("__init__.py"))
        if LIST.search(path.read_text(encoding="utf-8"))
    ]


def first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0]


def with_list(path: Path) -> str:
    """Return an `__init__.py` with the list of its folder: files, then folders."""
    files = [file for file in sorted(path.parent.glob("*.py")) if file != path]
    rooms = sorted(path.parent.glob("*/__init__.py"))
    entries = [(file.name, first_line(file)) for file in files]
    entries += [(f"{room.parent.name}/", first_line(room)) for room in rooms]
    made = "".join(
        textwrap.fill(f"- `{name}`: {text}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        + "\n"
        for name, text in entries
    )
    text = path.read_text(encoding="utf-8")
    return LIST.sub(lambda _: made, text, count=1)


def decisions() -> str:
    """Return the contents page of the decisions, the newest first."""
    lines = []
    for path in sorted(DECISIONS.glob("20*.md"), reverse=True):
        date, title = path.stem[:10], path.read_text(encoding="utf-8").split("\n", 1)[0]
        title = re.sub(rf"^# (?:{date}: )?", "", title)
        lines.append(f"- {date}: [{title}]({path.name})")
    return "\n".join(["# Decisions", "", "The newest first.", "", *lines, ""])


@pytest.mark.parametrize("path", lists(), ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_a_list_of_files_is_that_of_its_folder(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert with_list(path) == text, "write it: .venv/bin/python tests/test_contents.py"


def test_the_contents_of_the_decisions_are_all_of_them() -> None:
    text = INDEX.read_text(encoding="utf-8")
    assert text == decisions(), "write it: .venv/bin/python tests/test_contents.py"


@pytest.mark.parametrize("folder", FOLDERS_OF_PAGES)
def test_each_page_has_its_link_in_the_contents_of_its_folder(folder: str) -> None:
    pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
    text = (ROOT / "docs" / folder / "README.md").read_text(encoding="utf-8")
    missing = pages - set(re.findall(r"\]\(([\w-]+\.md)", text))
    assert not missing, f"docs/{folder}/README.md has no link to {missing}"


if __name__ == "__main__":
    for path in lists():
        path.write_text(with_list(path), encoding="utf-8")
    INDEX.write_text(decisions(), encoding="utf-8")
