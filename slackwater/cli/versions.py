"""What runs here: our version, and those of what we stand on."""

from __future__ import annotations

import importlib.metadata
import os
import platform

from slackwater.ingest.java import find_java
from slackwater.runtime.errors import JavaError


def versions() -> dict[str, str]:
    """Return {what: version}; "not found" for what is not there."""
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
    """Return the release and place of the Java that Spark would be given."""
    try:
        found = find_java(os.environ)
    except JavaError:
        return "not found"
    return f"{found.release} ({found.path})"
