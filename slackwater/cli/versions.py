"""Collect our version, and those of our dependencies."""

from __future__ import annotations

import importlib.metadata
import os
import platform

from slackwater.ingest.java import find_java
from slackwater.runtime.errors import JavaError


def versions() -> dict[str, str]:
    """Return {name: version}; "not found" if not installed."""
    return {
        "slackwater": _installed("slackwater"),
        "ray": _installed("ray"),
        "spark": _installed("pyspark"),
        "raydp": _installed("raydp"),
        "python": platform.python_version(),
        "java": _java(),
    }


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not found"


def _java() -> str:
    try:
        java = find_java(os.environ)
    except JavaError:
        return "not found"
    return f"{java.release} ({java.path})"
