"""Pages on operators, inputs and outputs: the samples run, and print what stands on the page.

The Python of a page is one program, run in an empty folder in the simulator. A block of `text`
is what the Python since the last such block prints, letter by letter.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FORM = [
    "What to type",
    "What comes out",
    "Nulls",
    "Late rows",
    "State",
    "Cost",
    "Guarantee",
]
PAGES = [
    page
    for folder in ("operators", "inputs", "outputs")
    for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    if page.name != "README.md"
]
ON_RAY = {"spark", "spark_stream", "ray_dataset"}
"""Pages whose samples need a Ray; tests/system/test_input_pages.py runs them."""


def name_of(page: Path) -> str:
    return f"{page.parent.name}/{page.stem}"


def printed_by(code: str, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "sample.py", "exec"), names)  # noqa: S102 - our own page
    return out.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_the_sections_of_the_form(page: Path) -> None:
    found = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [title for title in found if title in FORM] == FORM


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in ON_RAY], ids=name_of)
def test_a_page_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "sample"}
    printed, shown = "", 0
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            printed += printed_by(text, names)
        elif kind == "text":
            assert printed == text
            printed, shown = "", shown + 1
    assert shown
    assert not printed
