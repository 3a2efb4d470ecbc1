"""The English of code and pages: first lines of docstrings, banned words, long sentences."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("runtime", "actors", "ingest", "slackwater")
USED = ("", "operators", "inputs", "outputs")
"""Folders of `docs` with pages for users."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(page for folder in USED for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]

FIRST_WORDS = {"What", "Who", "Whether", "Which", "One", "Those", "All", "As", "By", "It"}
ENTRY_WITHOUT_NOUN = re.compile(
    r"(?:of|that|for|see|as|to|in|by|with|at|from|on|up|until|so|what|who|whom|which|whose|why|"
    r"it|one|those|there|how many(?=[.,;]))\b",
    re.IGNORECASE,
)
"""Openings of entries of `Args:` and `Attributes:` that leave the noun to the name."""
ENTRY = re.compile(r"    [\w`*][\w`*, ]*: +(.+)")
MOST_WORDS_FIRST_LINE = 15
MOST_WORDS_SENTENCE = 25
BANNED = re.compile(
    r"\b(?:behind|go(?:es)? by|comes? to|let(?:s|ting)? go|left away|leave away|anew|"
    r"likewise|put right|of (?:one|its|their)(?:'s|s)? own accord|there is none|nobody|somebody)\b",
    re.IGNORECASE,
)


def faults_of_code(source: str) -> Counter[str]:
    """Count the faults of a file of code."""
    tree, found = ast.parse(source), Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                found += faults_of_first_line(text, is_bool=_returns_bool(node))
                found["banned word"] += len(BANNED.findall(text))
                found["entry without a noun"] += entries_without_noun(text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found["banned word"] += len(BANNED.findall(token.string))
    return +found


def _returns_bool(node: ast.AST) -> bool:
    returns = getattr(node, "returns", None)
    return isinstance(returns, ast.Name) and returns.id == "bool"


def faults_of_first_line(text: str, *, is_bool: bool) -> Counter[str]:
    """Count the faults of a docstring's first line."""
    line = text.split("\n", 1)[0]
    words = line.split()
    found = Counter[str]()
    if words[0] in FIRST_WORDS and not (is_bool and words[0] == "Whether"):
        found["first word"] += 1
    if len(words) > MOST_WORDS_FIRST_LINE:
        found["long first line"] += 1
    return found


def entries_without_noun(text: str) -> int:
    """Count the entries of a docstring's arguments and attributes that begin without a noun."""
    is_list, count = False, 0
    for line in text.split("\n"):
        if line and not line.startswith(" "):
            is_list = line in ("Args:", "Attributes:")
        elif is_list and (entry := ENTRY.fullmatch(line)):
            count += bool(ENTRY_WITHOUT_NOUN.match(entry[1]))
    return count


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page, without code, tables and links' addresses."""
    page = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    page = re.sub(r"\]\([^)]*\)", "]", page)
    for line in page.split("\n"):
        if not line.lstrip().startswith(("|", "#")):
            yield from re.split(r"(?<=[.?!:])\s+", line)


def faults_of_page(page: str) -> Counter[str]:
    """Count the faults of a page."""
    told = [one for one in sentences(page) if one.strip()]
    found = Counter({"banned word": sum(len(BANNED.findall(one)) for one in told)})
    found["long sentence"] = sum(len(one.split()) > MOST_WORDS_SENTENCE for one in told)
    return +found


def test_code_and_pages_have_no_fault_of_language() -> None:
    files = [path for package in CODE for path in sorted((ROOT / package).rglob("*.py"))]
    found = []
    for path in [*files, *PAGES]:
        text = path.read_text(encoding="utf-8")
        faults = faults_of_code(text) if path.suffix == ".py" else faults_of_page(text)
        found += [f"{path.relative_to(ROOT)}: {fault}: {n}" for fault, n in sorted(faults.items())]
    assert not found, "\n".join(["write these otherwise (house style, CONTRIBUTING):", *found])


def test_a_fault_is_seen() -> None:
    source = '"""What it is."""\n\ndef f() -> bool:\n    """Whether it is behind."""  # anew\n'
    assert faults_of_code(source) == {"first word": 1, "banned word": 2}
    told = '"""Say it.\n\nArgs:\n    name: of it.\n    rows: how many.\n    many: how many rows.\n'
    rest = '    size: most bytes,\n        of all.\n\nRaises:\n    OSError: by the system.\n"""\n'
    assert faults_of_code(told + rest) == {"entry without a noun": 2}
    long = " ".join(["word"] * 26)
    assert faults_of_page(f"Short. {long}. It goes by time.") == {
        "banned word": 1,
        "long sentence": 1,
    }
