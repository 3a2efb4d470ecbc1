"""Where real data lies: the one place that knows, for examples, benchmarks and tests.

`DATA=<folder>`, in the environment or behind `make`; else the place that CONTRIBUTING.md names.
"""

from __future__ import annotations

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data" / "bus-warsaw-2024"
WEB_BESIDE = BESIDE.parent / "web-tracking-us-2019"
TICKS_BESIDE = BESIDE.parent / "stocks-us-ticks-2013"
PHONES_BESIDE = BESIDE.parent / "iot-umts-ooo-2014"
SOCCER_BESIDE = BESIDE.parent / "soccer-tromso-zxy-2013"
OPTIONS_BESIDE = BESIDE.parent / "options-goog-1min-2015"
CASES_BESIDE = BESIDE.parent / "conformance"
WANTED = "needs real data (see CONTRIBUTING, DATA=)"


class NoRealData(FileNotFoundError):
    """There are no files where real data was looked for."""


def warsaw() -> Path:
    """Return the folder with the parquet files of Warsaw's buses.

    Raises:
        NoRealData: no parquet files there; says how to name another folder.
    """
    return _folder(BESIDE, "*.parquet")


def web_visits() -> Path:
    """Return the folder with the web visits of a US panel: visits.parquet, panelists.csv.

    Raises:
        NoRealData: no such file there; says how to name another folder.
    """
    return _folder(WEB_BESIDE, "visits.parquet")


def stock_ticks() -> Path:
    """Return the folder with every trade of four symbols in a day: trades_2013-10-07.parquet.

    Raises:
        NoRealData: no such file there; says how to name another folder.
    """
    return _folder(TICKS_BESIDE, "trades_2013-10-07.parquet")


def phone_network() -> Path:
    """Return the folder with numbered messages of nine devices over UMTS: umts_d1_d5.parquet.

    Raises:
        NoRealData: no such file there; says how to name another folder.
    """
    return _folder(PHONES_BESIDE, "umts_d1_d5.parquet")


def soccer() -> Path:
    """Return the folder with positions of soccer players: tromso_anzhi_10min.parquet.

    Raises:
        NoRealData: no such file there; says how to name another folder.
    """
    return _folder(SOCCER_BESIDE, "tromso_anzhi_10min.parquet")


def options_quotes() -> Path:
    """Return the folder with minute quotes of options: goog_options_2015-12-24.parquet.

    Raises:
        NoRealData: no such file there; says how to name another folder.
    """
    return _folder(OPTIONS_BESIDE, "goog_options_2015-12-24.parquet")


def foreign_cases() -> Path:
    """Return the folder with cases of other engines' tests: cases.json, and folders of rows.

    It is `DATA` itself, or its folder `conformance`.

    Raises:
        NoRealData: no such file there; says how to name another folder.
    """
    named = os.environ.get("DATA")
    if named and (Path(named) / "conformance" / "cases.json").exists():
        return Path(named) / "conformance"
    return _folder(CASES_BESIDE, "cases.json")


def _folder(beside: Path, wanted: str) -> Path:
    named = os.environ.get("DATA")
    folder = Path(named) if named else beside
    if not any(folder.glob(wanted)):
        where = f"DATA={named} has no {wanted} files" if named else "there is none here"
        raise NoRealData(f"{WANTED}: {where}")
    return folder
