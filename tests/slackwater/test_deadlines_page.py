"""Pages on deadlines print what their readers run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sample_of(page: str) -> str:
    """Return the one Python sample of a page."""
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return str(sample)


def test_the_pages_on_deadlines_run_as_they_are_printed(tmp_path: Path) -> None:
    flow, history, policy = map(sample_of, ("deadlines", "tuning", "custom-policy"))
    assert policy in (ROOT / "examples/own_policy.py").read_text(encoding="utf-8")
    assert flow.count("SECONDS, EVERY_MS = 60, 20") == 1
    shorter = flow.replace("SECONDS, EVERY_MS = 60, 20", "SECONDS, EVERY_MS = 6, 50")
    (tmp_path / "slow_buses.py").write_text(shorter, encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - our own page
        [sys.executable, "-c", history],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "samples of 1 earlier jobs" in done.stdout
    assert (tmp_path / "jams.jsonl").stat().st_size > 0
