"""The pages as one whole: links, the contents page, the index of names, the reference."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from docs.build_site import (
    DOCS,
    GROUPS,
    INTERNAL,
    LINK,
    ROOT,
    contents,
    methods,
    modules,
    reference,
    settings,
)

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
OF_USERS = ("Dataflow", "Stream", "Cluster", "Job", "JobReport", "Expr")
"""Classes whose methods the index has one by one."""
SAME_METHODS = {"KeyedStream": "Stream", "Simulation": "Cluster"}
"""{class: the class whose methods of the same names the index has}."""


def said(page: Path) -> str:
    """Return the text of a page without code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its own, and those that GitHub makes of headings."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    seen = Counter[str]()
    made = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = LINK.sub(r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        made.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return made


def dead_links(page: Path, text: str) -> Iterator[str]:
    for _, target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        place = (page.parent / path).resolve() if path else page
        if not place.exists():
            yield f"{target}: no such file"
        elif anchor and (place.suffix != ".md" or anchor not in anchors(place)):
            yield f"{target}: no such heading"


def test_no_link_of_a_page_is_dead() -> None:
    dead = {str(page.relative_to(ROOT)): [*dead_links(page, said(page))] for page in PAGES}
    assert {page: links for page, links in dead.items() if links} == {}


def test_a_dead_link_is_seen() -> None:
    text = "[a](types.md#types) [b](types.md#nowhere) [c](gone.md) [[d]](#links)"
    assert list(dead_links(DOCS / "README.md", text)) == [
        "types.md#nowhere: no such heading",
        "gone.md: no such file",
        "#links: no such heading",
    ]


def test_the_contents_page_leads_to_every_page() -> None:
    reached = {DOCS / "README.md", *(page for pages in contents().values() for page in pages)}
    missing = sorted(
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page not in reached
    )
    assert not missing, f"link them from docs/README.md, or the README of their folder: {missing}"


def test_the_landing_page_says_what_slackwater_is() -> None:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Slackwater\n")
    assert "Rather than Flink or Bytewax" in text.partition("\n## ")[0]


@pytest.mark.parametrize("words", ["left join", "as-of", "backpressure", "Prometheus"])
def test_a_search_for_a_word_of_others_finds_a_page_that_says_what_to_do(words: str) -> None:
    found = [page for page in DOCS.rglob("*.md") if words.casefold() in said(page).casefold()]
    assert [page for page in found if page.parent.name not in ("decisions", "benchmarks")]


def test_the_readme_leads_to_the_contents_page() -> None:
    assert "(docs/README.md)" in said(ROOT / "README.md")


CALLED = [sw, sw.Stream, sw.Dataflow, sw.Cluster, sw.Job, sw.testing.SimulatedJob]
CALLED += [sw.Expr, *modules().values()]
"""Owners of the functions and methods that pages call by their names."""


def options_not_there(code: str) -> Iterator[str]:
    """Yield the options in calls of ours that no function or method of that name has."""
    try:
        tree = ast.parse(re.sub(r"=…|…", lambda dots: dots[0].replace("…", "0"), code))
    except SyntaxError:  # words, or a call that is cut short
        return
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        name = ast.unparse(call.func)
        if hasattr(builtins, name):
            continue
        name = name.rpartition(".")[2]
        found = [getattr(owner, name) for owner in CALLED if hasattr(owner, name)]
        options = [inspect.signature(one).parameters for one in found if inspect.isroutine(one)]
        kinds = {option.kind for each in options for option in each.values()}
        if options and inspect.Parameter.VAR_KEYWORD not in kinds:
            known = {option for each in options for option in each}
            yield from (f"{name}({k.arg}=)" for k in call.keywords if k.arg and k.arg not in known)


def test_calls_in_pages_have_options_that_are_there() -> None:
    assert [*options_not_there('a.limit(3, nmae="x")')] == ["limit(nmae=)"]
    pages = [
        page
        for page in PAGES
        if page.parent.name != "decisions" and not page.stem.startswith("coming-from")
    ]
    wrong = {
        f"{page.relative_to(ROOT)}: {option}"
        for page in pages
        for code in re.findall(
            r"^```python.*?\n(.*?)^```$|`([^`\n]*\([^`\n]*)`", page.read_text(), re.M | re.S
        )
        for option in options_not_there("".join(code))
    }
    assert sorted(wrong) == ["docs/outputs/custom.md: connect(isolation_level=)"]  # of sqlite3


# -- names -------------------------------------------------------------------------------------


def public_names() -> list[str]:
    """Return the public names and methods, as the index writes them."""
    names = [f"sw.{name}" for name in sw.__all__ if name not in modules()]
    names += [f"sw.{name}.{one}" for name, module in modules().items() for one in module.__all__]
    names += [f"{name}.{one}" for name in OF_USERS for one in methods(getattr(sw, name))]
    column = sw.col("a")
    names += [f".str.{one}" for one in methods(type(column.str))]
    names += [f".list.{one}" for one in methods(type(column.list))]
    return names + [f".dt.{one}" for one in methods(type(column.dt))]


def test_the_index_has_every_public_name_and_no_other() -> None:
    index = (DOCS / "by-what-you-want.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in index.split("\n") if line.startswith("|"))
    written = re.findall(r"`((?:sw|[A-Z]\w+)?\.[\w.]+)`", table)
    assert sorted(set(public_names()) - set(written)) == [], "add them to docs/by-what-you-want.md"
    assert sorted(set(written) - set(public_names())) == [], "these are no public names"


@pytest.mark.parametrize(("name", "like"), SAME_METHODS.items())
def test_a_class_has_no_method_that_the_index_lacks(name: str, like: str) -> None:
    assert set(methods(getattr(sw, name))) <= set(methods(getattr(sw, like)))


def test_the_reference_has_every_public_name_once() -> None:
    text = "\n".join(reference().values())
    written = Counter(re.findall(r'heading: "(sw\.[\w.]+)"', text))
    names = {name for name in public_names() if name.startswith("sw.")} - {"sw.__version__"}
    assert set(written) == names, "docs/build_site.py groups the names of the front door"
    assert max(written.values()) == 1


def test_every_public_name_has_a_docstring() -> None:
    bare = []
    for name in public_names():
        path = name.lstrip(".").split(".")
        of: Any = sw if path[0] == "sw" else getattr(sw, path[0], None) or sw.Expr
        if of is sw.Expr and path[0] in ("str", "dt", "list"):
            of = type(getattr(sw.col("a"), path[0]))
        for part in path[1:]:
            of = inspect.getattr_static(of, part) if inspect.isclass(of) else getattr(of, part)
        if (callable(of) or isinstance(of, property)) and not inspect.getdoc(of):
            bare.append(name)
    assert bare == []


def test_methods_called_internal_are_there() -> None:
    gone = [
        f"{name}.{one}"
        for name, ones in INTERNAL.items()
        for one in ones
        if not any(
            one in vars(base) or one in vars(base).get("__annotations__", ())
            for base in getattr(sw, name).__mro__
        )
    ]
    assert gone == []


# -- a page for each -----------------------------------------------------------------------------


def pages_of(folder: str) -> dict[str, Path]:
    """Return {name: page} of a folder's contents page."""
    text = (DOCS / folder / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"\[`(\w+)`\]\(([^)]+)\)", text)
    return {name: (DOCS / folder / target).resolve() for name, target in found}


def options_not_said(function: Callable[..., Any], page: Path) -> list[str]:
    """Return the options of a function that a page does not name in code."""
    text = page.read_text(encoding="utf-8")
    words = set(re.findall(r"[\w]+(?==)|\w+", " ".join(re.findall(r"`([^`\n]+)`", text))))
    return [
        name
        for name, option in inspect.signature(function).parameters.items()
        if option.kind is inspect.Parameter.KEYWORD_ONLY and name not in words
    ]


STREAM_METHODS = [name for name in methods(sw.Stream) if callable(getattr(sw.Stream, name))]


@pytest.mark.parametrize("name", STREAM_METHODS)
def test_a_stream_method_has_a_page_with_its_options(name: str) -> None:
    page = pages_of("operators").get(name)
    assert page is not None, "link its page from docs/operators/README.md"
    if name != "sink":  # its options are those of the outputs
        assert options_not_said(getattr(sw.Stream, name), page) == []


@pytest.mark.parametrize(
    ("folder", "name"),
    [(folder.lower(), name) for folder in ("Inputs", "Outputs") for name in GROUPS[folder]],
)
def test_an_input_or_output_has_a_page_with_its_options(folder: str, name: str) -> None:
    page = pages_of(folder).get(name)
    assert page is not None, f"link its page from docs/{folder}/README.md"
    assert options_not_said(getattr(sw, name), page) == []


def test_the_site_has_every_section_of_the_contents_page() -> None:
    text = settings(reference())
    assert [title for title in contents() if f'"{title}" = [' not in text] == []
    assert text.count(".md") > 100
