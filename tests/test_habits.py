"""The promises that the project's own files make to each other."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import slackwater

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("runtime", "actors", "ingest", "slackwater")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MADE = {
    ".git",
    ".venv",
    ".venv-docs",
    ".venv-flink",
    "__pycache__",
    "build",
    "dist",
    "out",
}  # folders that are nobody's text
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".lock", ".sh", ".cfg", ".txt", ".json", ""}

# In pieces, so that this file does not break its own rule.
PLACES = ["/" + "work/", "/" + "tmp/w", "/" + "root/", "/" + "home/"]
REGISTRIES = ["pypi." + "org", "python" + "hosted", "registry." + "npmjs", "index" + "-url ="]
MODULE_TO_PROJECT = {  # {module: the name it is installed under}, where they differ
    "sklearn": "scikit-learn",
    "zmq": "pyzmq",
}


def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]  # type: ignore[no-any-return]


def required(*extras: str, run: bool = True) -> set[str]:
    """Return the names of the packages that we ask for, to run and for these extras."""
    groups = [project()["dependencies"]] if run else []
    groups += [project()["optional-dependencies"][extra] for extra in extras]
    return {re.split(r"[\[<>=!~ ;]", line)[0] for group in groups for line in group}


def locked(lock: str) -> dict[str, str]:
    """Return {package: version} of a lock file."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", text, re.MULTILINE))


@cache
def own_files() -> dict[Path, str]:
    """Return {file of ours: its text}."""
    return {
        path: path.read_text(encoding="utf-8")
        for path in sorted(ROOT.rglob("*"))
        if path.suffix in TEXT
        and not any(part in MADE or part.endswith(("_cache", ".egg-info")) for part in path.parts)
        and ".hypothesis" not in path.parts
        and path.is_file()
    }


def lines_with(word: str) -> Iterator[tuple[str, str]]:
    """Yield (file:number, line) of all lines of ours with this word in them."""
    for path, text in own_files().items():
        if word in text:
            for number, line in enumerate(text.splitlines(), 1):
                if word in line:
                    yield f"{path.relative_to(ROOT)}:{number}", line


def paths_named(page: Path) -> set[str]:
    """Return the project paths that a page names, in back-ticks or as the target of a link.

    A back-ticked word is a path when it starts with a folder of ours or is a file at the top.
    """
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    tops = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in MADE}
    named = set()
    for word in re.findall(r"`([^`\s]+)`", text):
        path = word.split("::")[0].rstrip("/")
        if "/" in path and path.split("/")[0] in tops and not set(path) & set("*<>{}$"):
            named.add(path)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not target.startswith("mailto:"):
            named.add(str((page.parent / target).resolve().relative_to(ROOT)))
    return named


@cache
def defined_names(path: Path) -> set[str]:
    """Return a module's names, and those in its classes as "Gate.read" (self.x counts too)."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    names = names_in(module)
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            own = {
                inner.attr
                for inner in ast.walk(node)
                if isinstance(inner, ast.Attribute)
                and isinstance(inner.ctx, ast.Store)
                and isinstance(inner.value, ast.Name)
                and inner.value.id == "self"
            }
            names |= {f"{node.name}.{name}" for name in names_in(node) | own}
    return names


def names_in(scope: ast.Module | ast.ClassDef) -> set[str]:
    names = set()
    for node in scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_every_file_that_a_page_names_is_there() -> None:
    missing = [
        f"{page.relative_to(ROOT)} names {path}"
        for page in PAGES
        for path in sorted(paths_named(page))
        if not (ROOT / path).exists()
    ]
    assert not missing, "\n".join(missing)


def test_every_function_that_a_page_names_is_there() -> None:
    missing = [
        f"{page.relative_to(ROOT)} names {path}::{name}"
        for page in PAGES
        for path, name in re.findall(r"`([\w/]+\.py)::([\w.]+)`", page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists() or name not in defined_names(ROOT / path)
    ]
    assert not missing, "\n".join(missing)


def test_the_version_is_the_same_wherever_it_is_said() -> None:
    version = project()["version"]
    assert slackwater.__version__ == version
    assert importlib.metadata.version("slackwater") == version, "run make setup"
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_file_names_a_place_of_one_machine_or_a_registry() -> None:
    found = [
        f"{where} {place}"
        for place in [*PLACES, *REGISTRIES]
        for where, line in lines_with(place)
        if re.search(r"(?<![\w.*)-])" + re.escape(place), line)
    ]
    assert not found, "\n".join(found)


def test_only_one_line_speaks_of_a_folder_beside_the_project() -> None:
    beside = "../" + "shared"  # in pieces, as above
    spoken = (beside, "design in " + "shared")
    found = sorted({where for word in spoken for where, _ in lines_with(word)})
    assert len(found) == 1, found
    assert found[0].startswith("CONTRIBUTING.md:")


def test_the_glossary_maps_others_words_to_words_that_our_code_has() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    others = page.partition("## Words of others")[2]
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    )
    known = set(re.findall(r"\w+", code))
    unknown = [
        word
        for cell in re.findall(r"^\| [^|*]+ \| ([^|]+) \|", others, re.MULTILINE)
        for quoted in re.findall(r"`([^`]+)`", cell)
        for word in re.findall(r"[A-Za-z_]\w+", quoted)
        if word not in known
    ]
    assert others
    assert not unknown


def test_every_dependency_says_why_it_is_there() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([\w-]+)(?:\[\w+\])?`", page, re.MULTILINE))
    assert told == required(*project()["optional-dependencies"])


@pytest.mark.parametrize(
    ("lock", "asked"),
    [
        ("requirements.lock", required()),
        ("requirements-dev.lock", required("build", "dev")),
        ("requirements-docs.lock", required("docs", run=False)),
    ],
)
def test_the_locks_hold_every_dependency(lock: str, asked: set[str]) -> None:
    missing = asked - locked(lock).keys()
    assert not missing, f"{lock} lacks {missing}; run make lock"


def test_the_locks_agree_with_each_other() -> None:
    everything = locked("requirements-dev.lock")
    for lock in ("requirements.lock", "requirements-build.lock", "requirements-docs.lock"):
        differ = {
            name: (version, everything[name])
            for name, version in locked(lock).items()
            if everything.get(name, version) != version
        }
        assert not differ, f"{lock} differs from requirements-dev.lock: {differ}; run make lock"


def test_the_packages_import_only_what_is_asked_for() -> None:
    known = {name.replace("-", "_") for name in required()} | {*PACKAGES}
    known |= {module for module, name in MODULE_TO_PROJECT.items() if name in required()}
    strangers = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                modules: list[str] = []
                if isinstance(node, ast.Import):
                    modules = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    modules = [node.module]
                for module in modules:
                    top = module.split(".")[0]
                    if top not in known and top not in sys.stdlib_module_names:
                        strangers.add(f"{path.relative_to(ROOT)} imports {top}")
    assert not strangers, f"declare in pyproject.toml and docs/dependencies.md: {strangers}"


def test_every_ignored_lint_rule_carries_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^ignore = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    reason = ""
    for line in block.group(1).splitlines():
        reason = line.partition("#")[2].strip() or reason
        assert reason, f"no reason beside {line.strip()}"


def test_make_alone_lists_the_targets() -> None:
    make = shutil.which("make")
    assert make is not None
    shown = subprocess.run(  # noqa: S603 - our own Makefile
        [make], cwd=ROOT, capture_output=True, text=True, check=True, timeout=20
    ).stdout
    for target in ("setup", "demo", "test", "check", "check-all", "bench", "docs", "lock", "clean"):
        assert f"make {target} " in shown
