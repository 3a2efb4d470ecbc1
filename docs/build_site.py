"""Write the pages of the site: those of docs, and a reference from docstrings.

    python docs/build_site.py out/site

`make docs` runs it, and then Zensical over what it wrote. The contents page, docs/README.md, is
the navigation: a section for each heading, a page for each link. A linked folder with a README
brings the pages that this links to, one without brings all of its pages.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import slackwater as sw

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"\[((?:[^\]\[]|\[[^\]\[]*\])*)\]\(([^)\s]+)\)")

GROUPS = {  # {page of the reference: the names of the front door on it}
    "Flows": ["Dataflow", "Stream", "KeyedStream", "rewritten"],
    "Expressions": ["Expr", "col", "lit", "when", "where", "coalesce", "duration", "event_time"],
    "Windows": [
        *(
            "tumbling",
            "sliding",
            "cumulative",
            "calendar",
            "session",
            "rows",
            "opened_by",
            "everything",
            "count",
            "sum",
            "mean",
            "min",
            "max",
            "quantile",
            "median",
        ),
        *("covar", "corr", "slope", "intercept", "bit_and", "bit_or", "bit_xor"),
        *("std", "var", "any", "all", "first", "last", "arg_max", "arg_min", "top_k"),
        *("count_distinct", "collect", "custom"),
    ],
    "Inputs": [
        "parquet",
        "csv",
        "jsonl",
        "table",
        "spark",
        "spark_stream",
        "ray_dataset",
        "reread",
        "stamped",
    ],
    "Outputs": [
        "parquet_sink",
        "jsonl_sink",
        "csv_sink",
        "print_sink",
        "collect_sink",
        "callback_sink",
    ],
    "Running": ["Cluster", "Simulation", "Job", "JobReport", "Limits", "Tuning", "SlackwaterError"],
}
GUIDES = {  # {page of the reference: the page of docs on the same}
    "Flows": "operators/README.md",
    "Expressions": "types.md",
    "Windows": "operators/aggregate.md",
    "Inputs": "inputs/README.md",
    "Outputs": "outputs/README.md",
    "Running": "by-what-you-want.md#run",
}
BORROWED = {"KeyedStream": "Stream"}
"""{class: the class whose methods it has}: without `by=` and `on=`, which its keys are."""
ELSEWHERE = {  # where a name's docstring is, if the front door only leads there
    "spark": "slackwater.ingest.spark.spark",
    "spark_stream": "slackwater.ingest.push.streaming.spark_stream",
}
BESIDE = {  # what a name of the front door returns, documented after it
    "Expr": {
        "Expr.str": type(sw.col("a").str),
        "Expr.dt": type(sw.col("a").dt),
        "Expr.list": type(sw.col("a").list),
    },
    "when": {
        "sw.when(…)": type(sw.when(sw.lit(True))),
        "sw.when(…).then(…)": type(sw.when(sw.lit(True)).then(1)),
    },
}
INTERNAL = {  # methods without an underscore that are for our own files
    "Expr": sw.Expr._inner,  # errors about a wrong name omit them, too
    "KeyedStream": {"keys", "stream"},
    "Dataflow": sw.Dataflow._inner,
    "Job": {"attached", "beside", "detached", "needs"},
    "Cluster": {"explained"},
    "Simulation": {"explained"},
}


def modules() -> dict[str, Any]:
    """Return {name: module} of the modules of the front door."""
    named = {name: getattr(sw, name) for name in sw.__all__}
    return {name: one for name, one in named.items() if inspect.ismodule(one)}


def members(of: type) -> list[str]:
    """Return the public members of a class, ours and not Python's."""
    ours = [one for one in of.__mro__ if one.__module__.startswith("slackwater")]
    said = [(*vars(one), *vars(one).get("__annotations__", ())) for one in reversed(ours)]
    names = dict.fromkeys(name for names in said for name in names if name[0] != "_")
    return [name for name in names if name not in INTERNAL.get(of.__name__, ())]


def methods(of: type) -> list[str]:
    """Return the public methods and properties of a class."""
    return [
        name
        for name in members(of)
        if callable(one := getattr(of, name, None)) or isinstance(one, property)
    ]


def reference() -> dict[str, str]:
    """Return {file: text} of the reference: Markdown with a directive for each name."""
    pages = {}
    for title, names in GROUPS.items():
        lines = [f"# {title}", "", f"What to type, and what comes out: [page](../{GUIDES[title]})."]
        for name in names:
            target = ELSEWHERE.get(name, f"slackwater.front_door.{name}")
            lines += directive(f"sw.{name}", target, getattr(sw, name))
            if name in BORROWED:
                lines += ["", borrowed(getattr(sw, name), BORROWED[name])]
            for heading, one in BESIDE.get(name, {}).items():
                lines += directive(heading, f"{one.__module__}.{one.__qualname__}", one)
        pages[f"reference/{title.lower()}.md"] = "\n".join(lines)
    for name, module in modules().items():
        first = (inspect.getdoc(module) or "").split("\n\n")[0]
        lines = [
            f"# sw.{name}",
            "",
            re.sub(r" \(docs/([\w-]+)\.md\)", r" ([page](../\1.md))", first),
        ]
        for inner in module.__all__:
            lines += directive(
                f"sw.{name}.{inner}", f"slackwater.{name}.{inner}", getattr(module, inner)
            )
        pages[f"reference/{name}_module.md"] = "\n".join(lines)
    return pages


def borrowed(of: type, other: str) -> str:
    """Return a line that leads to the methods of another class."""
    links = [f"[`{name}`][slackwater.front_door.{other}.{name}]" for name in methods(of)]
    return f"It has these of `{other}`, without `by=` and `on=`: {', '.join(links)}."


def directive(heading: str, target: str, of: Any) -> list[str]:
    """Return the lines by which mkdocstrings inserts the docstrings of a name."""
    options: dict[str, Any] = {"heading": heading, "toc_label": heading.rpartition(".")[2]}
    if inspect.isclass(of):
        own = of.__name__ not in BORROWED and members(of)
        options |= {"inherited_members": bool(own), "members": own}
    lines = ["", f"::: {target}", "    options:"]
    return [*lines, *(f"      {key}: {json.dumps(value)}" for key, value in options.items())]


def title_of(page: Path) -> str:
    """Return the heading of a page, without marks."""
    first = page.read_text(encoding="utf-8").split("\n", 1)[0]
    return re.sub(r"[`*]", "", first.lstrip("# "))


def contents() -> dict[str, list[Path]]:
    """Return {section of the contents page: the pages that it leads to, in order}."""
    sections: dict[str, list[Path]] = {}
    for part in re.split(r"^## ", (DOCS / "README.md").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        sections[title] = []
        for place in linked(DOCS, text):
            if place.is_dir():
                sections[title] += sorted(place.glob("*.md"))
            elif place.name == "README.md":
                inside = linked(place.parent, place.read_text("utf-8"))
                sections[title] += [place, *(one for one in inside if one.parent == place.parent)]
            else:
                sections[title].append(place)
    return {title: list(dict.fromkeys(pages)) for title, pages in sections.items()}


def linked(folder: Path, text: str) -> list[Path]:
    """Return the pages and folders within docs that a text links to."""
    places = [
        (folder / target.partition("#")[0]).resolve()
        for _, target in LINK.findall(text)
        if "://" not in target
    ]
    return [
        one
        for one in places
        if one.is_relative_to(DOCS) and one != DOCS and (one.is_dir() or one.suffix == ".md")
    ]


def within(text: str, page: Path) -> str:
    """Return a page's text; links that lead out of docs are plain words there."""

    def kept(match: re.Match[str]) -> str:
        words, target = match.groups()
        place = (page.parent / target.partition("#")[0]).resolve()
        if "://" in target or target[0] == "#":
            return match[0]
        if place.is_dir() and place.is_relative_to(DOCS):
            return f"[{words}]({target.rstrip('/')}/README.md)"
        return match[0] if place.is_relative_to(DOCS) else words

    return LINK.sub(kept, text)


def page_list(folder: Path) -> str:
    """Return a contents page for a folder that has none."""
    lines = [f"- [{title_of(page)}]({page.name})" for page in sorted(folder.glob("*.md"))]
    return "\n".join([f"# {folder.name.title()}", "", *lines, ""])


def settings(pages: Iterable[str]) -> str:
    """Return the settings of Zensical, with the navigation.

    Args:
        pages: the files of the reference.
    """
    nav: list[dict[str, Any]] = [{"Slackwater": "README.md"}]
    for section, pages_of in contents().items():
        inside: list[Any] = []
        for folder, found in groupby(pages_of, lambda page: page.parent):
            if folder == DOCS:
                inside += [{title_of(page): page.name} for page in found]
            else:
                names = [page.relative_to(DOCS).as_posix() for page in found]
                first = f"{folder.name}/README.md"
                inside.append({folder.name.title(): list(dict.fromkeys([first, *names]))})
        nav.append({section: inside})
    nav.append({"Reference": list(pages)})
    return f"""[project]
site_name = "Slackwater"
docs_dir = "pages"
site_dir = "html"
use_directory_urls = false
nav = {toml(nav)}

[project.theme]
font = false # no page asks another server for anything
features = ["navigation.indexes", "toc.follow", "content.code.copy"]

[project.markdown_extensions.toc]
permalink = true

[project.markdown_extensions.toc.slugify]
object = "pymdownx.slugs.slugify"
kwds = {{ case = "lower" }}

[project.plugins.mkdocstrings.handlers.python]
paths = [{json.dumps(str(ROOT))}]

[project.plugins.mkdocstrings.handlers.python.options]
docstring_style = "google"
heading_level = 2
show_source = false
show_root_full_path = false
show_root_heading = true
show_bases = false
members_order = "source"
separate_signature = true
show_signature_annotations = true
"""


def toml(value: Any) -> str:
    """Return lists, dicts and text as TOML."""
    if isinstance(value, dict):
        return (
            f"{{ {', '.join(f'{json.dumps(key)} = {toml(one)}' for key, one in value.items())} }}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def write(folder: Path) -> None:
    """Write settings and pages into a folder, in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for page in sorted(DOCS.rglob("*.md")):
        text = within(page.read_text(encoding="utf-8"), page)
        (pages / page.relative_to(DOCS)).write_text(text, encoding="utf-8")
    for inside in sorted(one for one in DOCS.iterdir() if one.is_dir() and any(one.glob("*.md"))):
        if not (inside / "README.md").exists():
            (pages / inside.name / "README.md").write_text(page_list(inside), encoding="utf-8")
    (pages / "reference").mkdir()
    made = reference()
    for name, text in made.items():
        (pages / name).write_text(text + "\n", encoding="utf-8")
    (folder / "zensical.toml").write_text(settings(made), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
