"""Where benchmarks lie: in the folder of their paper, or the engine's; and their pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, folder_of, listing, page_of
from tests.test_language import faults_of_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/benchmarks").glob("*.md"))
MOST_WORDS = 1_500  # of a page
FOLDERS = sorted(path.parent.name for path in (ROOT / "benchmarks").glob("*/__init__.py"))
# {folder: other folders}; the rest may none. The flow of `mace-gates` is that of `sltuner-zipf`.
MAY_IMPORT = {"ssg": {"engine", "sltuner"}, "mace": {"sltuner"}, "patterns": {"espice"}}


def imported_folders(path: Path) -> Iterator[str]:
    """Yield the folders of benchmarks that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "benchmarks" and parts[1] in FOLDERS:
                yield parts[1]


def test_every_benchmark_has_a_run_in_the_folder_that_it_is_listed_under() -> None:
    without = []
    for name, (module, _) in BENCHMARKS.items():
        path = ROOT.joinpath("benchmarks", *module.split(".")).with_suffix(".py")
        body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
        if "run" not in [node.name for node in body if isinstance(node, ast.FunctionDef)]:
            without.append(name)
    assert not without


def test_the_listing_has_each_page_once_and_each_benchmark_below_its_own() -> None:
    listed: dict[tuple[str, str], list[str]] = {}
    place = ("", "")
    for line in listing():
        if line.startswith(" "):
            listed[place].append(line.split()[0])
        else:
            folder, page = re.findall(r"^benchmarks/(\w+), docs/benchmarks/([\w-]+)\.md$", line)[0]
            place = (folder, page)
            assert place not in listed, f"{line} stands twice"
            listed[place] = []
    assert sorted({folder for folder, _ in listed}) == FOLDERS
    assert {name: place for place, names in listed.items() for name in names} == {
        name: (folder_of(name), page_of(name)) for name in BENCHMARKS
    }


@pytest.mark.parametrize("page", sorted({page_of(name) for name in BENCHMARKS}))
def test_a_page_begins_with_the_figures_of_each_of_its_benchmarks(page: str) -> None:
    text = (ROOT / f"docs/benchmarks/{page}.md").read_text(encoding="utf-8")
    first = text.split("\n## ")[1]
    assert "| benchmark | measured | figure | target | holds |" in first
    told = re.findall(r"^\| `([\w-]+)` \|", first, re.MULTILINE)
    assert sorted(told) == sorted(name for name in BENCHMARKS if page_of(name) == page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_a_page_of_benchmarks_is_short_and_plain(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= MOST_WORDS
    assert not list(faults_of_page(text))


def test_every_link_into_a_page_of_benchmarks_finds_its_heading() -> None:
    lost = [
        f"{path.relative_to(ROOT)}: {target}#{anchor}"
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text("utf-8"))
        if "://" not in target
        for page in [(path.parent / target).resolve() if target else path]
        if page in PAGES and anchor not in anchors_of(page)
    ]
    assert not lost, "\n".join(lost)


def anchors_of(page: Path) -> set[str]:
    """Return where links into a page can lead: its headings, as GitHub writes them, and ids."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", one).lower().replace(" ", "-") for one in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', text))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_of_the_others_only_what_it_may(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path in sorted((ROOT / "benchmarks" / folder).rglob("*.py"))
        for other in imported_folders(path)
        if other != folder and other not in MAY_IMPORT.get(folder, set())
    ]
    assert not wrong, "\n".join(wrong)


def test_what_lies_on_top_imports_no_folder() -> None:
    top = (ROOT / "benchmarks").glob("*.py")
    assert not [f"{path.name}: {one}" for path in top for one in imported_folders(path)]
