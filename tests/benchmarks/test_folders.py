"""Where benchmarks lie: in the folder of their paper, or the engine's, with a page to each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, folder_of, listing

ROOT = Path(__file__).resolve().parents[2]
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


def test_the_listing_has_each_folder_once_and_each_benchmark_below_its_own() -> None:
    listed: dict[str, list[str]] = {}
    folder = ""
    for line in listing():
        word = re.split(r"[ ,]", line.strip())[0]
        if line.startswith(" "):
            listed[folder].append(word)
        else:
            folder = word
            assert folder not in listed, f"{folder} stands twice"
            listed[folder] = []
    assert sorted(listed) == FOLDERS
    assert {name: folder for folder, names in listed.items() for name in names} == {
        name: folder_of(name) for name in BENCHMARKS
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_page_of_a_folder_says_of_each_of_its_benchmarks_what_it_measures(folder: str) -> None:
    page = (ROOT / f"docs/benchmarks/{folder}.md").read_text(encoding="utf-8")
    section = page.partition("## What each measures\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)
    assert sorted(told) == sorted(name for name in BENCHMARKS if folder_of(name) == folder)


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
