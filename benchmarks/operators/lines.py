"""Lines of code of each operator, without comments, docstrings, imports and blank lines.

A file that several operators use counts once, in a row of its own.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import slackwater
from benchmarks.frame import Claim, Options, Result

__all__ = ["code_lines", "run"]

FOLDER = Path(slackwater.__file__).parent / "runtime" / "operators"
OPERATORS = {
    "session: its rule": ("aggregate/sessions.py",),
    "windows of rows": ("aggregate/row_counts.py",),
    "`opened_by`": ("aggregate/openings.py",),
    "calendar windows": ("aggregate/calendar_windows.py",),
    "cumulative windows": ("aggregate/cumulative_windows.py",),
    "windows without rows": ("aggregate/empty_windows.py",),
    "early results": ("aggregate/early_results.py",),
    "shared by windows of a key's own": (
        "aggregate/interval_cells.py",
        "aggregate/interval_machine.py",
        "aggregate/interval_rule.py",
        "aggregate/interval_words.py",
    ),
    "shared by all windows": ("aggregate/accumulating.py", "aggregate/window_step.py"),
    "`over`": ("aggregate/over_machine.py", "aggregate/over_step.py", "aggregate/ranges.py"),
    "totals": ("aggregate/totals_machine.py", "aggregate/totals_step.py"),
    "counted values": ("aggregate/counted_values.py", "aggregate/exact_sums.py"),
    "shared by `over` and totals": ("aggregate/running.py", "aggregate/runs.py"),
    "`custom`": ("aggregate/custom_aggregate.py", "aggregate/custom_states.py"),
    "rows that `first`, `top_k`, `collect` … choose": ("aggregate/chosen_rows.py",),
    "`covar`, `corr`, `slope`, `intercept`": ("aggregate/pair_moments.py",),
    "`join` with `how=`": ("join/how.py", "join/unmatched.py"),
    "`join` of tables": (
        "join/table_join.py",
        "join/table_join_machine.py",
        "join/table_side.py",
        "join/lives.py",
        "join/code_index.py",
    ),
    "`keep=` of tables and totals": ("ground/untouched.py",),
    "`asof`": ("join/asof.py", "join/asof_machine.py", "join/right_rows.py"),
    "`lookup`, `cross`": (
        "join/lookup.py",
        "join/table_rows.py",
        "join/key_places.py",
        "join/fresh.py",
    ),
    "`top_k`, `newest`, `oldest`": ("top_k",),
    "`to_table`": ("to_table",),
    "`changes`": ("each_row/changes.py",),
    "`silence`": ("silence",),
    "`limit`": ("limit",),
    "`flat_map`, `explode`": ("each_row/explode.py",),
}
"""{operator: its files, or folders, of the room of operators}."""
SESSION = ("session: its rule",)
MOST_OF_A_SESSION = 149  # under 150


def run(options: Options) -> Result:
    """Count the lines of each operator."""
    del options  # it takes no time
    result = Result(
        "lines of code, without comments, docstrings and imports", ["operator", "lines"]
    )
    for name, paths in OPERATORS.items():
        lines = sum(code_lines(file) for path in paths for file in _files(FOLDER / path))
        result.rows.append([name, lines])
        result.figures[name] = lines
    step = _class_lines(FOLDER / "aggregate/window_step.py", "IntervalStep")
    word = _class_lines(FOLDER / "aggregate/interval_words.py", "Session")
    result.figures["step of windows of a key's own"], result.figures["word of sessions"] = (
        step,
        word,
    )
    session = sum(result.figures[name] for name in SESSION) + step
    result.claims.append(
        Claim("lines of a session with its step", session, "<=", MOST_OF_A_SESSION)
    )
    return result


def code_lines(file: Path) -> int:
    """Return the lines of a file that have code which is neither a docstring nor an import."""
    return len(_lines(file))


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


def _lines(file: Path) -> set[int]:
    text = file.read_text(encoding="utf-8")
    without = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING}
    without |= {tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in without:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node):
            assert isinstance(node, ast.stmt), "both are statements"
            lines -= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return lines


def _is_text(node: ast.AST) -> bool:
    """Return whether a node is a text alone, as docstrings are."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return False
    return isinstance(node.value.value, str)


def _class_lines(file: Path, name: str) -> int:
    """Return the lines of code of one class."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return len(_lines(file) & {*range(node.lineno, (node.end_lineno or 0) + 1)})
    raise ValueError(f"{file.name} has no class {name}")
