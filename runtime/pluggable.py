"""Settings that take a name, an object of the user's, or a function that makes one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slackwater.runtime.errors import SettingError

__all__ = ["Pluggable"]


@dataclass(frozen=True, kw_only=True)
class Pluggable:
    """A setting whose value may be an object of the user's.

    Attributes:
        name: of the setting.
        calls: {name of a method that an object must have: how it is called}.
        made_from: what a function makes an object from.
        hint: what else may be written.
    """

    name: str
    calls: Mapping[str, str]
    made_from: str
    hint: str

    def check(self, own: object) -> None:
        """Refuse what is neither an object with all calls nor makes one."""
        missing = self._missing(own)
        if missing and not self._is_maker(own):
            raise SettingError(
                f"{self.name}={own!r} is a {type(own).__name__} without {' and '.join(missing)}: "
                f"a {self.name} of your own has {' and '.join(self.calls.values())}, or is a "
                f"function that makes one from {self.made_from}; or write {self.hint}"
            )

    def make(self, own: Any, given: object) -> Any:
        """Return a copy of the user's object, so that no job changes it, or what a function makes.

        Raises:
            SettingError: the object cannot be copied, or the function made something else.
        """
        if not self._is_maker(own):
            try:
                return copy.deepcopy(own)
            except Exception as problem:
                raise SettingError(
                    f"{self.name}={own!r} cannot be copied for a job, nor sent to it: {problem}; "
                    f"give a function that makes it from {self.made_from}"
                ) from problem
        made = own(given)
        if missing := self._missing(made):
            raise SettingError(
                f"{self.name}={own!r} made {made!r}, which is no {self.name} for it lacks "
                f"{' and '.join(missing)}; let it return an object that has "
                f"{' and '.join(self.calls.values())}"
            )
        return made

    def _is_maker(self, own: object) -> bool:
        return isinstance(own, type) or (callable(own) and bool(self._missing(own)))

    def _missing(self, own: object) -> list[str]:
        return [call for name, call in self.calls.items() if not callable(getattr(own, name, None))]
