"""Settings that take a name, a custom object, or a function that makes one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import a_kind, shown, text_of

__all__ = ["Pluggable"]


@dataclass(frozen=True, kw_only=True)
class Pluggable:
    """Setting whose value may be a custom object.

    Attributes:
        name: name of the setting.
        calls: {name of a method that an object must have: its call}.
        made_from: argument of a function that makes an object.
        hint: other values of the setting.
    """

    name: str
    calls: Mapping[str, str]
    made_from: str
    hint: str

    def check(self, own: object) -> None:
        """Check that a value is an object with all calls, or makes one."""
        missing = self._missing(own)
        if missing and not self._is_maker(own):
            raise SettingError(
                f"{self.name}={shown(own)} is {a_kind(own)} without "
                f"{' and '.join(missing)}: "
                f"a custom {self.name} has {' and '.join(self.calls.values())}, or is a "
                f"function that makes one from {self.made_from}; or write {self.hint}"
            )

    def make(self, own: Any, given: object) -> Any:
        """Return a custom object's copy, which one job may change, or a function's result.

        Raises:
            SettingError: the object cannot be copied, or the function made something else.
        """
        if not self._is_maker(own):
            try:
                return copy.deepcopy(own)
            except Exception as problem:
                raise SettingError(
                    f"{self.name}={shown(own)} cannot be copied for a job, nor sent to it: "
                    f"{text_of(problem)}; give a function that makes it from {self.made_from}"
                ) from problem
        made = own(given)
        if missing := self._missing(made):
            raise SettingError(
                f"{self.name}={shown(own)} made {shown(made)}, which cannot be a {self.name}: "
                f"it lacks {' and '.join(missing)}; let it return an object that has "
                f"{' and '.join(self.calls.values())}"
            )
        return made

    def _is_maker(self, own: object) -> bool:
        return isinstance(own, type) or (callable(own) and bool(self._missing(own)))

    def _missing(self, own: object) -> list[str]:
        return [call for name, call in self.calls.items() if not callable(getattr(own, name, None))]
