"""Another commit's code beside ours, measured in turns: BEFORE=<git ref> in the environment.

```
checkout of BEFORE, its `benchmarks` replaced with ours ─▶ child ─▶ figures ┐
this checkout ──────────────────────────────────────────▶ child ─▶ figures ┴▶ ratios
```

So both are measured by one and the same measuring code, in turns of a minute or some; what is
compared is the packages (`runtime`, `actors`, `ingest`, `slackwater`). BEFORE is f931a420 or later:
older trees have no `slackwater.runtime`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.ended import ALL_HELD, NOT_HELD
from benchmarks.frame import NotHereError, Spread, WrongResultError

__all__ = ["HOW", "Child", "before_ref", "checkout", "child_line", "in_turns", "ratios"]

ROOT = Path(__file__).resolve().parents[2]
HOW = "BEFORE=<git ref> in the environment compares with that commit, in the same run"
VISIBLE = Path("/var/tmp")  # noqa: S108  hosts of namespaces see it, too
CHILD_S = 900.0
CLOSE_S = 30.0


def before_ref() -> str | None:
    """Return the commit to compare with, as it was named; None: nobody has named one."""
    return os.environ.get("BEFORE") or None


@contextmanager
def checkout(ref: str) -> Iterator[Path]:
    """Have the code of a commit in a folder for a while, with `benchmarks` as they are now.

    Raises:
        NotHereError: there is no such commit, or no git here.
    """
    folder = Path(tempfile.mkdtemp(prefix="before-", dir=VISIBLE))
    tree = folder / "tree"
    folder.chmod(0o755)
    try:
        done = _git("worktree", "add", "--detach", str(tree), ref)
        if done.returncode != 0:
            raise NotHereError(f"BEFORE={ref} cannot be checked out: {done.stderr.strip()}; {HOW}")
        shutil.rmtree(tree / "benchmarks")
        shutil.copytree(ROOT / "benchmarks", tree / "benchmarks")
        yield tree
    finally:
        _git("worktree", "remove", "--force", str(tree))
        shutil.rmtree(folder, ignore_errors=True)


def child_line(tree: Path, words: Sequence[str]) -> Any:
    """Run `python -m words…` on the code in a folder; return the JSON of its last line.

    Claims of a run elsewhere may fail.

    Raises:
        WrongResultError: it failed; with the end of what it said.
    """
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", *words],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=CHILD_S,
        check=False,
    )
    if done.returncode not in (ALL_HELD, NOT_HELD):
        raise WrongResultError(f"{' '.join(words)} in {tree}: {done.stderr[-2_000:]}")
    return json.loads(done.stdout.splitlines()[-1])


class Child:
    """A program that runs on the code in a folder, and answers each line with one; all JSON."""

    def __init__(self, tree: Path, module: str) -> None:
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  until close
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", module],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        self._tree = tree

    def ask(self, question: Any) -> Any:
        """Return its answer.

        Raises:
            WrongResultError: it has ended instead; with the end of what it said.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):  # other lines are Ray's
                return json.loads(line)
        self._said.seek(0)
        raise WrongResultError(f"the child in {self._tree}: {self._said.read()[-2_000:]}")

    def close(self) -> None:
        """Let it end, as it does when no more lines come."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()


def in_turns(
    before: Callable[[], dict[str, float]], now: Callable[[], dict[str, float]], *, times: int
) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Measure both so often, one after the other, and who begins in turns: an hour's drift."""
    pairs = []
    for turn in range(times):
        if turn % 2 == 0:
            old, new = before(), now()
        else:
            new, old = now(), before()
        pairs.append((old, new))
    return pairs


def ratios(pairs: Sequence[tuple[dict[str, float], dict[str, float]]]) -> dict[str, Spread]:
    """Return {figure: now / before, over the pairs}, of figures that each pair has on both sides.

    A figure that is 0 before, or not a number on one side, has no ratio.
    """
    names = [name for name in pairs[0][0] if all(name in a and name in b for a, b in pairs)]
    return {
        name: Spread.of([new[name] / old[name] for old, new in pairs])
        for name in names
        if all(old[name] > 0 for old, _ in pairs)
    }


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    git = shutil.which("git")
    if git is None:
        raise NotHereError(f"there is no git here; {HOW}")
    return subprocess.run(  # noqa: S603
        [git, "-C", str(ROOT), *words], capture_output=True, text=True, check=False
    )
