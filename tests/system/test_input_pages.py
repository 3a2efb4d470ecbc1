"""The pages on inputs from Spark and Ray Data run as they are printed, in a process each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import QUICK_JVM

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.ray, pytest.mark.spark]


@pytest.mark.parametrize("name", ["spark", "spark_stream", "ray_dataset"])
def test_a_page_of_ray_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    page = (ROOT / f"docs/inputs/{name}.md").read_text(encoding="utf-8")
    ((_, code), (_, shown)) = re.findall(r"^```(python|text)\n(.*?)^```$", page, re.M | re.S)
    done = subprocess.run(  # noqa: S603 - our own page
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": QUICK_JVM},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown, done.stderr
