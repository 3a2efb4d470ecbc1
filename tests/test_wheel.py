"""What goes into the wheel besides code."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

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
        assert "py.typed" in names[package]
        assert (ROOT / package / "py.typed").is_file()


def test_the_command_starts_in_a_module_that_goes_into_the_wheel() -> None:
    made = Distribution()
    made.parse_config_files([ROOT / "pyproject.toml"])
    with (ROOT / "pyproject.toml").open("rb") as file:
        command = tomllib.load(file)["project"]["scripts"]["slackwater"]
    module, _, function = command.partition(":")
    assert module.rpartition(".")[0] in (made.packages or [])
    assert callable(getattr(importlib.import_module(module), function))
