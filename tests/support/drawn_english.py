"""Draw `Args:` blocks, names and errors that differ between two commits, by a seed.

    python -m tests.support.drawn_english b549b623 HEAD 49

A place is a file and a function; places that only one of the commits has are not drawn.
"""

from __future__ import annotations

import ast
import inspect
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.test_language import CODE, documented, literal, names_of

ROOT = Path(__file__).resolve().parent.parent.parent
DRAWN = 10
WIDEST = 160
"""Characters of a text that a table shows."""


def sources(commit: str) -> dict[str, str]:
    """Return {path: text} of our files of code at a commit."""
    listed = _git("ls-tree", "-r", "--name-only", commit, "--", *CODE).split()
    paths = [path for path in listed if path.endswith(".py")]
    return {path: _git("show", f"{commit}:{path}") for path in paths}


def _git(*words: str) -> str:
    return subprocess.run(  # noqa: S603 - our own words
        ["git", *words],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def blocks(node: ast.AST) -> Iterator[str]:
    """Yield the `Args:` block of a function or class, if it has one."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")  # type: ignore[arg-type]
    for part in text.split("\n\n"):
        if part.startswith("Args:\n"):
            yield " / ".join(line.strip() for line in part.splitlines()[1:])


def names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a function defines, each once."""
    yield from dict.fromkeys(name for inner in ast.walk(node) for name in names_of(inner))


def errors(node: ast.AST) -> Iterator[str]:
    """Yield the literal texts of the errors that a function raises."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Raise) and isinstance(inner.exc, ast.Call) and inner.exc.args:
            yield " ".join(literal(inner.exc.args[0])[0].split())


KINDS: dict[str, Callable[[ast.AST], Iterator[str]]] = {
    "`Args:`": blocks,
    "names": names,
    "errors": errors,
}


Texts = dict[tuple[str, str, int], str]
"""{(path, function, number): text} of one kind."""


def texts_of(files: Mapping[str, str], kind: str) -> Texts:
    """Return the texts of one kind in the functions of these files."""
    return {
        (path, name, number): text
        for path, source in files.items()
        for node, name in documented(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        for number, text in enumerate(KINDS[kind](node))
    }


def drawn(was: Texts, now: Texts, seed: str) -> list[str]:
    """Return a table of places whose text differs, drawn by the seed.

    Functions of which one commit has more texts are left out: their numbers do not agree.
    """
    counts = [Counter(place[:2] for place in texts) for texts in (was, now)]
    places = sorted(
        place
        for place in was.keys() & now.keys()
        if was[place] != now[place] and counts[0][place[:2]] == counts[1][place[:2]]
    )
    rows = random.Random(seed).sample(places, DRAWN)  # noqa: S311 - a draw that can be repeated
    head = [f"{DRAWN} of {len(places)} that differ.", "", "| where | before | now |"]
    lines = [f"| `{at[0]}`, {at[1]} | {_cut(was[at])} | {_cut(now[at])} |" for at in rows]
    return [*head, "| --- | --- | --- |", *lines, ""]


def _cut(text: str) -> str:
    text = text.replace("|", "\\|")
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}…"


def main() -> None:
    """Write a table for each kind."""
    before, after, seed = sys.argv[1:]
    old, new = sources(before), sources(after)
    for kind in KINDS:
        table = drawn(texts_of(old, kind), texts_of(new, kind), seed)
        sys.stdout.write("\n".join([f"## {kind}", "", *table, ""]))


if __name__ == "__main__":
    main()
