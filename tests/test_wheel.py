"""What goes into the wheel besides code."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from setuptools.dist import Distribution

ROOT = Path(__file__).resolve().parent.parent


def test_our_annotations_come_with_the_wheel() -> None:
    made = Distribution()
    made.parse_config_files([ROOT / "pyproject.toml"])
    made.include_package_data = False  # or it would write down what it has found
    build: Any = made.get_command_obj("build_py")
    build.ensure_finalized()
    names = {package: files for package, _, _, files in build.data_files}
    for package in ("runtime", "actors", "ingest", "slackwater"):
        name = package if package == "slackwater" else f"slackwater.{package}"
        assert "py.typed" in names[name]
        assert (ROOT / package / "py.typed").is_file()


def test_the_command_starts_in_a_module_that_goes_into_the_wheel() -> None:
    made = Distribution()
    made.parse_config_files([ROOT / "pyproject.toml"])
    with (ROOT / "pyproject.toml").open("rb") as file:
        command = tomllib.load(file)["project"]["scripts"]["slackwater"]
    module, _, function = command.partition(":")
    assert module.rpartition(".")[0] in (made.packages or [])
    assert callable(getattr(importlib.import_module(module), function))


USERS = """
import sys
import ingest, runtime
import slackwater as sw

flow = sw.Dataflow("beside")
rows = flow.source("rows", sw.table({"ts": [1, 2]}), event_time="ts")
rows.filter(sw.col("ts") > 1).sink("out", sw.collect_sink())
job = sw.Simulation().submit(flow)
job.wait()
assert job.result("out")["ts"].to_pylist() == [2]
assert ingest.MINE == runtime.MINE == "mine"
home = sys.modules["slackwater.runtime"].__file__
assert "site-packages" in home, home
assert "actors" not in sys.modules
"""


def test_the_wheel_works_beside_a_users_files_of_the_same_names(tmp_path: Path) -> None:
    tree = tmp_path / "tree"  # a build leaves its files there, for the next to find
    for folder in ("runtime", "actors", "ingest", "slackwater"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tree / folder, symlinks=True, ignore=leave)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tree)
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*words, "-w", tmp_path, tree], check=True, timeout=100)  # noqa: S603
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env")
    (home,) = tmp_path.glob("env/lib/python*/site-packages")
    with ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
        archive.extractall(home)
    assert names == {"slackwater", *(name for name in names if name.endswith(".dist-info"))}
    # What it needs is installed here. A plain path leads there, not to the checkout.
    (home / "needed.pth").write_text(sysconfig.get_path("purelib"))
    mine = tmp_path / "mine"
    (mine / "runtime").mkdir(parents=True)
    for file in ("ingest.py", "runtime/__init__.py"):
        (mine / file).write_text('MINE = "mine"\n')
    (mine / "flow.py").write_text(USERS)
    done = subprocess.run(  # noqa: S603
        [tmp_path / "env/bin/python", "flow.py"],
        cwd=mine,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
