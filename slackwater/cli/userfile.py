"""Import the user's file, and find the dataflow in it."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from slackwater.runtime.errors import FlowError, SlackwaterError
from slackwater.runtime.model.whose_code import let_ctrl_c_pass
from slackwater.runtime.nearest import choices, listed
from slackwater.runtime.shown import a_kind, text_of


@runtime_checkable
class Flow(Protocol):
    """Dataflow, as far as the command line uses it."""

    @property
    def name(self) -> str:
        """Name of the flow."""
        ...

    @property
    def steps(self) -> Mapping[str, Any]:
        """Steps by name, {step name: step}, in topological order."""
        ...

    def explain(self) -> str:
        """Return the graph as text."""
        ...


def split_target(target: str) -> tuple[Path, str | None]:
    """Return the file and the name in `FLOW.py` or `FLOW.py:name`."""
    path, colon, name = target.rpartition(":")
    if colon and name.isidentifier() and path:
        return Path(path), name
    return Path(target), None


class Loaded(NamedTuple):
    """Dataflow with the user's module that has it."""

    flow: Flow
    module: ModuleType


def load_flow(path: Path, name: str | None = None) -> Loaded:
    """Import a file and return its dataflow.

    It is the dataflow of this name, else that called `flow`, else the result of a function
    `build()`, else the only one in the file. A name may also be that of a function that returns a
    dataflow.

    Raises:
        FlowError: the file stops with an error (the user's traceback is in the message), or
            has no such dataflow.
        SlackwaterError: building the flow raised it; a note has the line.
    """
    module = _imported(path)
    return Loaded(_chosen(module, name, path), module)


_NO_FLOW = (
    "no dataflow; write `flow = slackwater.Dataflow(…)` at its top level, or a function `build()` "
    "that returns one"
)


def _chosen(module: ModuleType, name: str | None, path: Path) -> Flow:
    flows: dict[str, Flow] = {key: value for key, value in vars(module).items() if _is_flow(value)}
    if name is not None:
        return _named(module, name, flows, path)
    if "flow" in flows:
        return flows["flow"]
    if callable(getattr(module, "build", None)):
        return _built(module.build, "build", path)
    distinct = {id(value): key for key, value in flows.items()}
    if len(distinct) == 1:
        return next(iter(flows.values()))
    if distinct:
        raise FlowError(
            f"{path} has several dataflows ({listed(distinct.values())}); "
            f"name one: {path.name}:{next(iter(distinct.values()))}"
        )
    raise FlowError(f"{path} has {_NO_FLOW}")


def _is_flow(value: object) -> TypeGuard[Flow]:
    return isinstance(value, Flow) and not isinstance(value, type)


def _named(module: ModuleType, name: str, flows: Mapping[str, Flow], path: Path) -> Flow:
    if name in flows:
        return flows[name]
    value = getattr(module, name, None)
    builds = [key for key in ("build",) if callable(getattr(module, key, None))]
    if value is None and not flows and not builds:
        raise FlowError(f"{path} has no {name!r}, and {_NO_FLOW}")
    if value is None:
        raise FlowError(f"{path} has no {name!r}; {choices(name, flows or builds)}")
    if not callable(value):
        raise FlowError(
            f"{name!r} in {path} is of type {type(value).__name__}; name a dataflow, or a function "
            "that returns a dataflow"
        )
    return _built(value, name, path)


def _built(build: Any, name: str, path: Path) -> Flow:
    try:
        inspect.signature(build).bind()
    except TypeError as problem:
        raise FlowError(
            f"{name}() in {path} cannot be called without arguments ({text_of(problem)}); "
            "give its parameters defaults"
        ) from problem
    made = _run_theirs(build, path)
    if not _is_flow(made):
        raise FlowError(f"{name}() in {path} returned {a_kind(made)}; it must return a Dataflow")
    return made


def _imported(path: Path) -> ModuleType:
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FlowError(f"{path} is not a Python file; name a file that ends in .py")
    # As when Python runs the file. Ray's workers can import modules beside the script, and in the
    # working folder.
    sys.argv[:1] = [str(path.resolve())]
    # Modules beside the file, and those in the working folder.
    for folder in (str(Path.cwd()), str(path.resolve().parent)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _run_theirs(lambda: spec.loader.exec_module(module), path)
    return module


def _module_name(path: Path) -> str:
    # A name such as random.py is that of another module.
    if path.stem.isidentifier() and path.stem not in sys.modules:
        other = importlib.util.find_spec(path.stem)
        if other is None or other.origin == str(path.resolve()):
            return path.stem
    return "flow_in_" + re.sub(r"\W", "_", path.stem)


def _run_theirs(call: Any, path: Path) -> Any:
    """Call the user's code; its errors name the line, and omit our traceback."""
    try:
        return call()
    except SlackwaterError as problem:
        at = [
            frame.lineno
            for frame in traceback.extract_tb(problem.__traceback__)
            if _is(frame, path)
        ]
        if at:
            problem.add_note(f"({path}, line {at[-1]})")
        raise
    except BaseException as problem:
        let_ctrl_c_pass(problem)
        frames = traceback.extract_tb(problem.__traceback__)
        first = next(
            (number for number, frame in enumerate(frames) if _is(frame, path)), len(frames)
        )
        lines = traceback.format_list(frames[first:])
        lines += traceback.format_exception_only(problem)
        raise FlowError(
            f"{path} stopped with {type(problem).__name__} before its flow could be read:\n"
            + "".join(lines).rstrip()
        ) from problem


def _is(frame: traceback.FrameSummary, path: Path) -> bool:
    return Path(frame.filename) == path or Path(frame.filename) == path.resolve()
