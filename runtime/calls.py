"""Calls that do not fit a function are refused at their line.

```
csv("a.csv", seperator=";")    there is no such option     the nearest one, and all there are
csv("a.csv", batch_rows="a")   a value of another kind     what it must be
dedupe("k")                    an option is missing        all options, as they are written
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter, Signature, isfunction, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, Unpack, get_args, get_origin

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.nearest import nearest
from slackwater.runtime.other_names import answer_to, option_choices
from slackwater.runtime.shown import shown

__all__ = ["checked_call", "checked_fields", "checked_methods", "checked_options", "must_be"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)

_OWN = ("self", "cls")
_NAMES = ("name", "column", "by", "on", "left_on", "right_on", "to")
"""Names of steps, key columns and types are checked where the others are known."""
_NAMED = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "text"),
    bytes: ((bytes,), "bytes"),
    NoneType: ((NoneType,), "None"),
    os.PathLike: ((os.PathLike,), "a path"),
    Mapping: ((Mapping,), "a dict"),
    Sequence: ((Iterable,), "a list"),
}
"""{annotation: classes of its values, their name}; other annotations are not checked."""
_SAME_WORDS = {"full": "outer", "full_outer": "outer", "outer": "left", "cross": "inner"}
"""{word of another library: ours}, where ours may stand."""


def checked_call(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse calls that do not fit a function.

    The function that is returned raises SettingError for such a call: an option is not there or
    missing, or a value is not of its annotation. Classes of ours are not checked here.
    """
    return _checked(function, must_be)


def checked_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse calls whose options are unknown or missing, of a function that checks its values.

    Only a word of a few that is not text is refused here: the function looks for it among them.
    """
    return _checked(function, _must_be_word)


def _must_be_word(kind: Any, value: object) -> str | None:
    is_no_word = _takes_words(kind) and not isinstance(value, str)
    return must_be(kind, value) if is_no_word else None


def _checked(
    function: Callable[_P, _R], rule_of: Callable[[Any, object], str | None]
) -> Callable[_P, _R]:
    call = signature(function)
    every = call.parameters.values()
    named = [
        parameter.name
        for parameter in every
        if parameter.kind in _NAMED and parameter.name not in _OWN
    ]
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in every)
    place = function.__qualname__.removesuffix(".__init__")
    who = place.rpartition(".")[2]
    example = answer_to("call", place)
    as_written = "" if example is None else f"; {example}"
    kinds: dict[str, Any] = {}  # {argument: annotation}, once there was a call

    @wraps(function)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        for option in options:
            if option in named:
                continue
            others = _options_of(call, function) if takes_any else ()
            if others is not None and option not in others:
                way_out = answer_to("call", f"{place}.{option}")
                way_out = way_out or option_choices(option, [*named, *others])
                raise SettingError(f"{who}() has no option {option!r}; {way_out}{as_written}")
        try:
            bound = call.bind(*args, **options).arguments
        except TypeError as problem:
            raise SettingError(
                f"{who}(): {problem}; it is {who}({_shown(call)}){as_written}"
            ) from None
        if not kinds:
            checked_here = {*named} - {*_NAMES}
            kinds.update((name, _kind(call.parameters[name], function)) for name in checked_here)
        for name, value in bound.items():
            if name in kinds and (rule := rule_of(kinds[name], value)) is not None:
                if _takes_words(kinds[name]):  # the example of the call has none of its words
                    hint = _nearest_word(kinds[name], value)
                else:
                    hint = _hint(name, value, rule) or as_written
                raise SettingError(f"{who}(): {name}={shown(value, 60)} must be {rule}{hint}")
        return function(*args, **options)

    return checked


def _options_of(call: Signature, function: Callable[..., Any]) -> Sequence[str] | None:
    """Return the options of `**how: Unpack[…]`; None if any are taken."""
    (rest,) = (each for each in call.parameters.values() if each.kind is Parameter.VAR_KEYWORD)
    kind = _kind(rest, function)
    return [*get_args(kind)[0].__annotations__] if get_origin(kind) is Unpack else None


def checked_methods(cls: _C) -> _C:
    """Check the calls of a class's own methods for users, as `checked_call` does."""
    inner: Iterable[str] = getattr(cls, "_inner", ())
    for name, method in list(vars(cls).items()):
        if isfunction(method) and not name.startswith("_") and name not in inner:
            setattr(cls, name, checked_call(method))
    return cls


def checked_fields(cls: _C) -> _C:
    """Check the arguments of a class, as `checked_call` does; for dataclasses."""
    made: Any = cls
    made.__init__.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__init__ = checked_call(made.__init__)
    return cls


def must_be(kind: Any, value: object) -> str | None:
    """Return what a value must be, in words; None if it fits."""
    rules = list(_rules(kind))
    if any(rule is None or rule[0](value) for rule in rules):
        return None
    return " or ".join(rule[1] for rule in rules if rule is not None)


_Rule = tuple[Callable[[object], bool], str]


def _rules(kind: Any) -> Sequence[_Rule | None]:
    """Return (test, words) of each alternative of an annotation; None if there is no test."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return [rule for each in get_args(kind) for rule in _rules(each)]
    if origin is Literal:
        return [(partial(_is_choice, get_args(kind)), " or ".join(map(repr, get_args(kind))))]
    if (origin or kind) not in _KINDS:
        return [None]
    classes, words = _KINDS[origin or kind]
    if origin is Sequence:
        (item,) = get_args(kind)
        return [(partial(_is_list, item), "a list of texts" if item is str else words)]
    return [(partial(_is_kind, classes, kind is bool), words)]


def _hint(name: str, value: object, rule: str) -> str:
    if isinstance(value, str) and "a list of texts" in rule:
        return f"; write {name}=[{shown(value)}]"
    if isinstance(value, list | tuple) and "a path" in rule:
        return "; for several files write a folder or a pattern, such as 'loops/*.csv'"
    return ""


def _takes_words(kind: Any) -> bool:
    return any(get_origin(each) is Literal for each in (kind, *get_args(kind)))


def _nearest_word(kind: Any, value: object) -> str:
    """Return the way out after a wrong word: the nearest right one."""
    rules = (kind, *get_args(kind))
    words = [each for rule in rules if get_origin(rule) is Literal for each in get_args(rule)]
    if not isinstance(value, str):
        return ""
    near = _SAME_WORDS.get(value.casefold())
    if near not in words:
        near = nearest(value, words)
    return "" if near is None else f"; the nearest is {near!r}"


def _is_choice(choices: tuple[Any, ...], value: object) -> bool:
    return any(isinstance(value, type(choice)) and value == choice for choice in choices)


def _is_kind(classes: tuple[type, ...], takes_bool: bool, value: object) -> bool:
    return isinstance(value, classes) and (takes_bool or not isinstance(value, bool | np.bool_))


def _is_list(item: Any, value: object) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        return False
    return not isinstance(value, Sequence) or all(must_be(item, kind) is None for kind in value)


def _kind(parameter: Parameter, function: Callable[..., Any]) -> Any:
    """Return an annotation; Any if it is imported for type checkers alone."""
    kind = parameter.annotation
    if not isinstance(kind, str):
        return Any if kind is Parameter.empty else kind
    try:
        return eval(kind, function.__globals__)  # noqa: S307 - our own annotation
    except NameError:
        return Any


def _shown(call: Signature) -> str:
    """Return the arguments of a function without their types."""
    plain = []
    for name, parameter in call.parameters.items():
        default: Any = parameter.default
        if default is not Parameter.empty and not isinstance(default, _SHORT):
            default = _MORE
        if name not in _OWN:
            plain.append(parameter.replace(annotation=Parameter.empty, default=default))
    return str(Signature(plain))[1:-1]


class _More:
    def __repr__(self) -> str:
        return "…"


_MORE, _SHORT = _More(), (NoneType, bool, int, float, str, tuple)
