"""Contents pages are made from the files: lists in `__init__.py`, decisions, papers, benchmarks.

python tests/test_contents.py

writes them. An entry is a file and the first line of its docstring, or the title of its page. The
other contents pages of docs are ordered by what a reader wants; each page has its link there.
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
DOCS = ROOT / "docs"
TABLE = re.compile(r"^\| (?:key|page) \|.*\n(?:\|.*\n)*", re.M)
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


def title(path: Path) -> str:
    """Return the title of a page, without its date."""
    line = path.read_text(encoding="utf-8").split("\n", 1)[0]
    return re.sub(rf"^# (?:{path.stem[:10]}: )?", "", line)


def decisions() -> str:
    """Return the contents page of the decisions, the newest first."""
    pages = sorted((DOCS / "decisions").glob("20*.md"), reverse=True)
    lines = [f"- {page.stem[:10]}: [{title(page)}]({page.name})" for page in pages]
    return "\n".join(["# Decisions", "", "The newest first.", "", *lines, ""])


def papers() -> str:
    """Return the contents page of the papers: each key, and the source that its page names."""
    rows = [
        f"| [[{page.stem}]]({page.name}) | {page.read_text(encoding='utf-8').split(chr(10))[2]} |"
        for page in sorted((DOCS / "papers").glob("*.md"))
        if title(page).startswith(f"[{page.stem}] ")
    ]
    return _with_table("papers", ["| key | paper |", "| --- | --- |", *rows])


def benchmark_pages() -> str:
    """Return the contents page of the benchmarks: each page, its folder, what it measures."""
    tree = ast.parse((ROOT / "benchmarks/__main__.py").read_text(encoding="utf-8"))
    given = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    names_of: dict[str, list[str]] = {}
    folder_of: dict[str, str] = {}
    for name, (module, _) in given["BENCHMARKS"].items():
        folder = module.partition(".")[0]
        page = next((page for page, names in given["PAGES"].items() if name in names), folder)
        names_of.setdefault(page, []).append(f"`{name}`")
        folder_of[page] = folder
    rows = [
        f"| [{title(DOCS / f'benchmarks/{page}.md').removeprefix('Benchmarks of ')}]({page}.md) "
        f"| `benchmarks/{folder_of[page]}` | {', '.join(names)} |"
        for page, names in names_of.items()
    ]
    head = ["| page | folder | benchmarks |", "| --- | --- | --- |"]
    return _with_table("benchmarks", [*head, *rows])


def _with_table(folder: str, lines: list[str]) -> str:
    text = (DOCS / folder / "README.md").read_text(encoding="utf-8")
    return TABLE.sub(lambda _: "\n".join([*lines, ""]), text, count=1)


MADE = {"decisions": decisions, "papers": papers, "benchmarks": benchmark_pages}
"""{folder of docs: makes its contents page}."""


@pytest.mark.parametrize("path", lists(), ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_a_list_of_files_is_that_of_its_folder(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert with_list(path) == text, "write it: .venv/bin/python tests/test_contents.py"


@pytest.mark.parametrize("folder", MADE)
def test_a_contents_page_of_docs_is_that_of_its_folder(folder: str) -> None:
    text = (DOCS / folder / "README.md").read_text(encoding="utf-8")
    assert text == MADE[folder](), "write it: .venv/bin/python tests/test_contents.py"


@pytest.mark.parametrize("folder", FOLDERS_OF_PAGES)
def test_each_page_has_its_link_in_the_contents_of_its_folder(folder: str) -> None:
    pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
    text = (ROOT / "docs" / folder / "README.md").read_text(encoding="utf-8")
    missing = pages - set(re.findall(r"\]\(([\w-]+\.md)", text))
    assert not missing, f"docs/{folder}/README.md has no link to {missing}"


if __name__ == "__main__":
    for path in lists():
        path.write_text(with_list(path), encoding="utf-8")
    for folder, made in MADE.items():
        (DOCS / folder / "README.md").write_text(made(), encoding="utf-8")
