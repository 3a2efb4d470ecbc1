"""The pages on inputs from Spark and Ray Data run as they are printed: one program, one cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import QUICK_JVM

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("ray_dataset", "spark", "spark_stream")
OPENS = "with sw.Cluster.local(nodes=1, cores=2) as cluster:\n"

pytestmark = [pytest.mark.ray, pytest.mark.spark]


def test_pages_of_spark_and_ray_data_print_what_they_show(tmp_path: Path) -> None:
    """Each page opens the same cluster; here it is opened once, as Spark takes 20 s of CPU."""
    before, inside, shown = "", "", ""
    for name in PAGES:
        page = (ROOT / f"docs/inputs/{name}.md").read_text(encoding="utf-8")
        ((_, code), (_, text)) = re.findall(r"^```(python|text)\n(.*?)^```$", page, re.M | re.S)
        assert code.count(OPENS) == 1, name
        first, _, rest = code.partition(OPENS)
        before, inside, shown = before + first, inside + rest, shown + text
    done = subprocess.run(  # noqa: S603 - our own pages
        [sys.executable, "-c", before + OPENS + inside],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JDK_JAVA_OPTIONS": QUICK_JVM},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown, done.stderr
