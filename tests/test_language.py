"""The English of code and pages: docstrings, errors, names, banned words, long sentences."""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import slackwater
from slackwater.runtime import errors

ROOT = Path(__file__).resolve().parent.parent
CODE = ("runtime", "actors", "ingest", "slackwater")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = "docs/decisions"
FOR_USERS = "for users"
"""Group of what a user sees: pages, docstrings of public names, texts of errors."""
EVERYWHERE = "everywhere"
"""Group of the rules that have no exception in code."""
ELSEWHERE = "elsewhere"
"""Group of the folders that have no line in `ALLOWED`."""

FIRST_WORDS = {"What", "Who", "Whether", "Which", "One", "Those", "All", "As", "By", "It"}
NO_NOUN = re.compile(
    r"(?:of|that|for|see|as|to|in|by|with|at|from|on|up|until|so|what|who|whom|which|whose|why|"
    r"it|one|those|there|how many(?=[.,;]))\b",
    re.IGNORECASE,
)
"""Openings of entries of `Args:` and `Attributes:` that leave the noun to the name."""
ENTRY = re.compile(r"    [\w`*][\w`*, ]*: *(.*)")
FEWEST_WORDS_ENTRY = 4
MOST_WORDS_FIRST_LINE = 15
MOST_WORDS_SENTENCE = 25
BANNED = re.compile(
    r"\b(?:behind|go(?:es)? by|comes? to|let(?:s|ting)? go|left away|leave away|anew|"
    r"likewise|put right|of (?:one|its|their)(?:'s|s)? own accord|there is none|nobody|somebody)\b",
    re.IGNORECASE,
)
IS_NO = re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!longer\b)", re.IGNORECASE)
"""Denials that put `no` before the noun: write "is not a …"."""
OTHER_NONE = re.compile(
    r"\bNone`?(?:: | (?:for|where|when|unless|until|before|after|without|as long as|while)\b)"
)
"""Absence in another form than "None if …"."""
HIDDEN_NOUNS = {"one", "found", "taken", "told", "asked", "said", "seen", "kept", "behind"}
"""Words that hide the noun of a name."""
STAYING = {
    "": {"most_kept_rows"},  # everywhere
    # Names that users write or read.
    "runtime/measure/prediction.py": {"seen_load"},
    "runtime/simulate/faults.py": {"said"},
    "slackwater/jobs.py": {"seen"},
    # Fields of snapshots.
    "runtime/closing/account.py": {"_taken", "_taken_early"},
    "runtime/closing/aim.py": {"_seen"},
    "runtime/closing/fitting.py": {"_kept"},
    "runtime/closing/probslack_run.py": {"_behind"},
    "runtime/merge/reader.py": {"_seen"},
    "runtime/order/ldop.py": {"_seen_ns"},
    "runtime/schedule/outputs.py": {"_told_ns", "_asked_ns"},
    "runtime/schedule/queues.py": {"told"},
    "runtime/schedule/source_node.py": {"taken"},
    "runtime/sources/arrivals.py": {"_told"},
}
"""{file: its names with such a word that stay}."""
ERRORS = {*errors.__all__} - {"FrameError", "LedgerError", "kind_of", "way_out"}
HINT = re.compile(
    r"; |\n|\b(?:must|takes?|needs?|such as|give|write|use|try|add|omit|allow|predict|set|make)\b",
    re.IGNORECASE,
)
"""Signs that an error says what to type."""

ALLOWED = {
    EVERYWHERE: 0,
    FOR_USERS: 0,
    DECISIONS: 335,
    "runtime/schedule": 0,
    "runtime/model": 0,
    "runtime/progress": 0,
    "runtime/sources": 0,
    "runtime/sinks": 0,
    "runtime/plan": 0,
    "runtime/control": 0,
    "runtime/tune": 0,
    "runtime/merge": 0,
    "runtime/measure": 0,
    "runtime/life": 0,
    "actors": 0,
    ELSEWHERE: 284,
}
"""Most faults of each group. A folder's line holds for those below it. A number only falls."""


class Fault(NamedTuple):
    """A fault in a file of code."""

    line: int
    text: str
    group: str
    """`FOR_USERS`, `EVERYWHERE`, or empty: that of its folder."""


def faults_of_code(
    source: str, public: frozenset[str] = frozenset(), path: str = ""
) -> Iterator[Fault]:
    """Yield the faults of a file of code.

    Args:
        source: text of the file.
        public: qualified names of its classes and functions that users import.
        path: path of the file, for names that stay there.
    """
    tree = ast.parse(source)
    for node, name in documented(tree):
        text, line = ast.get_docstring(node) or "", getattr(node, "lineno", 1)
        strict = [*faults_of_first_line(text, is_bool=_returns_bool(node)), *banned(BANNED, text)]
        strict += [f"entry without a noun: {e}" for _, e in entries(text) if NO_NOUN.match(e)]
        yield from (Fault(line, fault, EVERYWHERE) for fault in strict)
        is_public = bool(public & {name, name.rpartition(".")[0]}) and "._" not in name
        group = FOR_USERS if is_public else ""
        yield from (Fault(line, fault, group) for fault in faults_of_formulas(text))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string
            yield from (Fault(line, fault, EVERYWHERE) for fault in banned(BANNED, text))
            yield from (Fault(line, fault, "") for fault in faults_of_formulas(text))
    for raised in ast.walk(tree):
        if isinstance(raised, ast.Raise):
            yield from (Fault(raised.lineno, f, FOR_USERS) for f in faults_of_error(raised))
    for line, name in hidden_nouns(tree, path):
        yield Fault(line, f"name without its noun: {name}", "")


def documented(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield a module and its classes and functions, each with its qualified name."""
    yield tree, ""
    pending = [(node, "") for node in tree.body]
    while pending:
        node, prefix = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{node.name}"
            yield node, name
            pending += [(inner, f"{name}.") for inner in node.body]
        else:
            pending += [
                (inner, prefix)
                for inner in ast.iter_child_nodes(node)
                if isinstance(inner, ast.stmt)
            ]


def _returns_bool(node: ast.AST) -> bool:
    returns = getattr(node, "returns", None)
    return isinstance(returns, ast.Name) and returns.id == "bool"


def faults_of_first_line(text: str, *, is_bool: bool) -> Iterator[str]:
    """Yield the faults of a docstring's first line."""
    line = text.split("\n", 1)[0]
    words = line.split()
    if words and words[0] in FIRST_WORDS and not (is_bool and words[0] == "Whether"):
        yield f"first word: {words[0]}"
    if len(words) > MOST_WORDS_FIRST_LINE:
        yield f"long first line: {line}"


def faults_of_formulas(text: str) -> Iterator[str]:
    """Yield a text's denials and absences in other forms, and its short entries of `Args:`."""
    yield from banned(IS_NO, text)
    yield from banned(OTHER_NONE, text)
    for section, entry in entries(text):
        if section == "Args:" and len(entry.split()) < FEWEST_WORDS_ENTRY:
            yield f"short entry: {entry}"


def banned(rule: re.Pattern[str], text: str) -> Iterator[str]:
    """Yield the places of a text that a rule bans, each with the words after it."""
    yield from (f"banned: {text[m.start() : m.end() + 30]!r}" for m in rule.finditer(text))


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of a docstring's arguments and attributes, each after its section."""
    section, entry = "", ""
    for line in [*text.split("\n"), "End"]:
        begins = ENTRY.fullmatch(line)
        if entry and (begins or not line.startswith("     ")):
            yield section, entry
            entry = ""
        if line and not line.startswith(" "):
            section = line if line in ("Args:", "Attributes:") else ""
        elif section and begins:
            entry = begins[1] or "-"
        elif entry:
            entry += f" {line.strip()}"


def faults_of_error(raised: ast.Raise) -> Iterator[str]:
    """Yield the faults of an error's text."""
    call = raised.exc
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args):
        return
    text, is_whole = literal(call.args[0])
    yield from banned(IS_NO, text)
    if call.func.id in ERRORS and is_whole and not HINT.search(text):
        yield f"error without a hint: {text!r}"


def literal(node: ast.expr) -> tuple[str, bool]:
    """Return the literal text of an expression, and whether it is whole.

    A value at the end of a text or a sentence may bring a text with a hint.
    """
    if isinstance(node, ast.Constant):
        return str(node.value), True
    if isinstance(node, ast.JoinedStr):
        text = "".join(literal(value)[0] for value in node.values)
        words = text.replace("{}", "").split()
        return text, not re.search(r"\{\}(?:$|\. )", text) and len(words) > 2
    if isinstance(node, ast.BinOp):
        (left, _), (right, is_whole) = literal(node.left), literal(node.right)
        return left + right, is_whole
    return "{}", False


def hidden_nouns(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a file defines and that have a word in place of their noun."""
    lines: dict[str, int] = {}
    stays = STAYING[""] | STAYING.get(path, set())
    for node in ast.walk(tree):
        for name in names_of(node):
            if HIDDEN_NOUNS & words_of(name) and name not in stays:
                lines.setdefault(name, node.lineno)  # type: ignore[attr-defined]
    for name, line in lines.items():
        yield line, name


def names_of(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
            return [name]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            return [name]
    return []


def words_of(name: str) -> set[str]:
    """Return the words of a name, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page, without code, tables and links' addresses."""
    page = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    page = re.sub(r"\]\([^)]*\)", "]", page)
    for line in page.split("\n"):
        if not line.lstrip().startswith(("|", "#")):
            yield from re.split(r"(?<=[.?!:])\s+", line)


def faults_of_page(page: str) -> Iterator[str]:
    """Yield the faults of a page."""
    for sentence in sentences(page):
        for rule in (BANNED, IS_NO, OTHER_NONE):
            yield from banned(rule, sentence)
        if len(sentence.split()) > MOST_WORDS_SENTENCE:
            yield f"long sentence: {sentence}"


@cache
def public_names() -> dict[Path, frozenset[str]]:
    """Return {file: qualified names in it that users import}."""
    names: dict[Path, set[str]] = {}
    modules = [slackwater, *(getattr(slackwater, name) for name in slackwater.__all__)]
    for module in modules:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            home = getattr(value, "__module__", None)
            if isinstance(home, str) and hasattr(value, "__qualname__"):
                file = importlib.import_module(home).__file__
                assert file is not None
                names.setdefault(Path(file).resolve(), set()).add(value.__qualname__)
    return {path: frozenset(qualified) for path, qualified in names.items()}


def group_of(folder: str) -> str:
    """Return the group of a folder: the longest line of `ALLOWED` that has it."""
    parts = folder.split("/")
    lines = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((line for line in lines if line in ALLOWED), ELSEWHERE)


@cache
def faults() -> dict[str, list[str]]:
    """Return {group: its faults, each with its place}."""
    groups: dict[str, list[str]] = {group: [] for group in ALLOWED}
    for path in sorted(path for package in CODE for path in (ROOT / package).rglob("*.py")):
        place, group = path.relative_to(ROOT), group_of(str(path.parent.relative_to(ROOT)))
        if HIDDEN_NOUNS & words_of(path.stem):
            groups[group].append(f"{place}: file's name without its noun")
        public = public_names().get(path, frozenset())
        for fault in faults_of_code(path.read_text(encoding="utf-8"), public, str(place)):
            groups[fault.group or group].append(f"{place}:{fault.line}: {fault.text}")
    for path in PAGES:
        group = DECISIONS if path.parent == ROOT / DECISIONS else FOR_USERS
        page = faults_of_page(path.read_text(encoding="utf-8"))
        groups[group] += [f"{path.relative_to(ROOT)}: {fault}" for fault in page]
    return groups


@pytest.mark.parametrize("group", ALLOWED)
def test_code_and_pages_have_no_more_faults_of_language_than_allowed(group: str) -> None:
    places = faults()[group]
    assert len(places) <= ALLOWED[group], "\n".join(
        [
            f"{len(places)} faults in {group!r}, {ALLOWED[group]} allowed; "
            "write those that are new otherwise (house style, CONTRIBUTING):",
            *places,
        ]
    )


def kinds(source: str) -> Counter[str]:
    """Count the faults of a source by their kind."""
    return Counter(fault.text.partition(":")[0] for fault in faults_of_code(source))


def test_a_fault_is_noticed() -> None:
    source = '"""What it is."""\n\ndef f() -> bool:\n    """Whether it is behind."""  # anew\n'
    assert kinds(source) == {"first word": 1, "banned": 2}
    head = (
        '"""Say it.\n\nArgs:\n    name: of it all and more.\n    rows: how many.\n    many: rows.\n'
    )
    tail = '    size: most bytes,\n        of all.\n\nRaises:\n    OSError: by the system.\n"""\n'
    assert kinds(head + tail) == {"entry without a noun": 2, "short entry": 2}
    assert [
        fault.split(":")[0] for fault in faults_of_page(f"{'word ' * 26}. It goes by time.")
    ] == [
        "long sentence",
        "banned",
    ]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("for one in rows: pass", "name without its noun"),
        ("def f(rows_kept): pass", "name without its noun"),
        ("class RowsFound: pass", "name without its noun"),
        ("self.most_kept_rows = 1", ""),
        ("def someone(): pass", ""),
        ('"""Rows; None: all."""', "banned"),
        ('"""Rows; None if all."""', ""),
        ("x = 1  # it is no row", "banned"),
        ("x = 1  # there is no row", ""),
        ('raise FlowError(f"step {name} is empty")', "error without a hint"),
        ('raise FlowError(f"step {name} is empty; omit it")', ""),
        ('raise FlowError(f"step {name}: {problem}")', ""),
        ('raise ValueError("it is no number")', "banned"),
    ],
)
def test_each_rule(source: str, fault: str) -> None:
    assert [*kinds(source)] == [fault] * bool(fault)
