"""Generated files with faults, and what must become of each.

Good rows are told by Python's csv and json modules, which read the file's good records alone; the
number of bad ones is known, since the generator made them.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import slackwater as sw

START = 1_700_000_000_000_000_000
"""The first event time, in nanoseconds."""
TYPES = {"t": "int64", "x": "float64", "s": "string"}
NAMES = list(TYPES)
WORDS = ["alpha", "be ta", "ga,mma", "de;lta", 'ep"silon', "ze\tta", "eta's", "a\nb", "th|eta"]
ACCENTS = ["naïf", "größe", "señal"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A file or folder, how it is read, and what must come out.

    Attributes:
        name: for messages.
        read: returns the input.
        rows: its good rows; None: it is refused.
        refused: pattern of the error's text.
        bad: number of bad records.
    """

    name: str
    read: Callable[[], Any]
    rows: list[Row] | None = None
    refused: str = ""
    bad: int = 0
    faults: list[str] = field(default_factory=list)


def cases(seed: int, count: int, folder: Path) -> Iterator[Case]:
    """Yield generated cases, whose files are written below the folder."""
    chance = random.Random(seed)  # noqa: S311 - drawn cases, not a secret
    for number in range(count):
        place = folder / f"{number:03}"
        place.mkdir()
        make = csv_case if chance.random() < 0.6 else json_case
        yield make(chance, place, f"{number:03}")


def csv_case(chance: random.Random, folder: Path, name: str) -> Case:
    """Return a CSV file of a drawn form with some bad records."""
    options = _form(chance)
    encoding, sep, quote = options["encoding"], options["sep"], options["quote"]
    end = chance.choice(["\n", "\r\n"])
    words = [w for w in [*WORDS, *ACCENTS] if quote is not None or not set(w) & {sep, "\n"}]
    words = [w for w in words if options["newlines_in_values"] or "\n" not in w]
    rows: list[list[str]] = []
    parts: list[tuple[str, bool]] = []
    size = chance.choice([0, 1, 5, 40, 40, 300])
    for number in range(size):
        number_text = f"{chance.uniform(-9, 9):.3f}".replace(".", options["decimal"])
        word = chance.choice(words)
        if size == 300 and number == 200:
            word *= 3_000  # a record beyond a piece's usual ones
        values = [str(START + number), number_text, word]
        if chance.random() < 0.1:
            values[1] = "" if options["nulls"] is None else options["nulls"][0]
        rows.append(values)
        parts.append((_line(values, sep, quote), True))
        if chance.random() < 0.05:
            parts.append(("", True))
        if options["comment"] and chance.random() < 0.2:
            parts.append((options["comment"] + " it's \"quoted", True))
    faults = _csv_faults(chance, options) if chance.random() < 0.7 else []
    for fault in faults:
        parts.insert(chance.randint(0, len(parts)), (fault, False))
    header = [] if isinstance(options["header"], list) else [sep.join(NAMES)]
    lead = ["# lead"] if options["comment"] == "#" and chance.random() < 0.5 else []
    text = end.join([*lead, *header, *(part for part, _ in parts)]) + end
    data = text.encode(encoding)
    if chance.random() < 0.2 and encoding == "utf-8":
        data = b"\xef\xbb\xbf" + data
    path = _packed(chance, folder / "a.csv", data)
    options["on_bad"] = chance.choice(["error", "skip", "divert"])
    good = [_typed(values, options) for values in _reread(rows, sep, quote)]
    return _case(f"csv {name} {options} {faults}", path, sw.csv, options, good, faults)


def _form(chance: random.Random) -> dict[str, Any]:
    decimal = chance.choice([".", ".", ","])
    sep = chance.choice([";", "\t", "|"] + ([","] if decimal == "." else []))
    return {
        "encoding": chance.choice(["utf-8", "utf-8", "latin1", "cp1252", "utf-16"]),
        "sep": sep,
        "quote": chance.choice(['"', '"', '"', "'", None]),
        "header": chance.choice([True, True, NAMES]),
        "comment": chance.choice([None, None, "#", "//"]),
        "decimal": decimal,
        "nulls": chance.choice([None, None, ["-"]]),
        "newlines_in_values": chance.random() < 0.8,
    }


def _line(values: list[str], sep: str, quote: str | None) -> str:
    def written(value: str) -> str:
        if quote is None or not (set(value) & {sep, quote, "\n"}):
            return value
        return quote + value.replace(quote, quote * 2) + quote

    return sep.join(map(written, values))


def _reread(rows: list[list[str]], sep: str, quote: str | None) -> list[list[str]]:
    """Return good rows as Python's csv module reads their text."""
    text = "".join(_line(values, sep, quote) + "\n" for values in rows)
    form: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if quote is None else {"quotechar": quote}
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=sep, **form))


def _typed(values: list[str], options: dict[str, Any]) -> Row:
    nulls = options["nulls"] or [""]
    number = None if values[1] in nulls else float(values[1].replace(options["decimal"], "."))
    return {"t": int(values[0]), "x": number, "s": values[2]}


def _csv_faults(chance: random.Random, options: dict[str, Any]) -> list[str]:
    sep, quote = options["sep"], options["quote"]
    made = {
        "short": f"{START}{sep}1",
        "long": sep.join([str(START), "1", "a", "b"]),
        "word for a whole number": sep.join(["word", "1", "a"]),
        "too large": sep.join(["9" * 25, "1", "a"]),
        "word for a float": sep.join([str(START), "1x", "a"]),
        "unclosed quote": sep.join([str(START), "1", f"{quote}abc"]),
    }
    kinds = [kind for kind in made if quote is not None or kind != "unclosed quote"]
    return [made[chance.choice(kinds)] for _ in range(chance.choice([1, 1, 3, 20]))]


def json_case(chance: random.Random, folder: Path, name: str) -> Case:
    """Return a file of JSON lines with some bad ones."""
    encoding = chance.choice(["utf-8", "utf-8", "latin1", "utf-16"])
    good: list[Row] = []
    lines: list[str] = []
    for number in range(chance.choice([0, 1, 5, 40, 300])):
        row: Row = {"t": START + number, "x": round(chance.uniform(-9, 9), 3)}
        row["s"] = chance.choice([*WORDS, *ACCENTS, "", "\x00nul", None])
        if chance.random() < 0.1:
            del row["x"]
        lines.append(json.dumps(row, ensure_ascii=chance.random() < 0.5))
        good.append({key: json.loads(lines[-1]).get(key) for key in NAMES})
        if chance.random() < 0.05:
            lines.append(" ")
    faults = []
    if chance.random() < 0.7:
        faults = [chance.choice(JSON_FAULTS) for _ in range(chance.choice([1, 1, 3, 20]))]
    for fault in faults:
        lines.insert(chance.randint(0, len(lines)), fault)
    end = chance.choice(["\n", "\r\n"])
    path = _packed(chance, folder / "a.jsonl", (end.join(lines) + end).encode(encoding))
    options = {"encoding": encoding, "on_bad": chance.choice(["error", "skip", "divert"])}
    return _case(f"jsonl {name} {options} {faults}", path, sw.jsonl, options, good, faults)


JSON_FAULTS = [
    "{",
    "word",
    "[1, 2]",
    "7",
    "null",
    " null ",
    "true",
    '"text"',
    '{"t": ' + "[" * 1_000 + "]" * 1_000 + "}",
    '{"t": "word"}',
    '{"t": 1.5}',
    '{"t": true}',
    '{"x": "1.5"}',
    '{"s": 7}',
    '{"s": ["a"]}',
    '{"t": NaN}',
    '{"t": 99999999999999999999}',
    '{"t": 1} {"t": 2}',
    '{"t": 1',
    '{"s": "\\ud800"}',
]


def _packed(chance: random.Random, path: Path, data: bytes) -> Path:
    kind = chance.choice(["", "", ".gz", ".bz2"])
    path = path.with_name(path.name + kind)
    if kind:
        data = gzip.compress(data) if kind == ".gz" else bz2.compress(data)
    path.write_bytes(data)
    return path


def _case(
    name: str,
    path: Path,
    read: Callable[..., Any],
    options: dict[str, Any],
    good: list[Row],
    faults: list[str],
) -> Case:
    def opened() -> Any:
        return read(path, types=TYPES, columns=NAMES, **options)

    if options["on_bad"] == "error" and faults:
        return Case(name, opened, refused=r"a\.(csv|jsonl).*line \d+: ", faults=faults)
    return Case(name, opened, rows=good, bad=len(faults), faults=faults)
