"""Shedding: events that a pattern drops under load (docs/overload.md)."""

from typing import TYPE_CHECKING, NoReturn

from slackwater.runtime.other_names import way_out_of
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.wrapper.shed_pattern import EventShedding
from slackwater.runtime.shedding.wrapper.words import espice

__all__ = ["EventShedding", "Shedder", "espice"]

if not TYPE_CHECKING:  # for mypy each name would be there

    def __getattr__(name: str) -> NoReturn:
        """Refuse a name that is not there, with what to write instead."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"sw.shedding has no {name!r}; {way_out_of('shedding', name, __all__)}"
        )
