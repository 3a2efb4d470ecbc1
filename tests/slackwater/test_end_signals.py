"""Signals that end a run: given to the handler by hand, so that no process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

import slackwater as sw
from slackwater.cli import main
from slackwater.end_signals import FROM_OUTSIDE, EndSignals
from slackwater.report.report_file import load_report
from slackwater.runtime.interrupts import CtrlC, Terminated, for_user
from tests.support.fake_host import FakeHost, call, host, write
from tests.support.flows import ticking

__all__ = ["host"]

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
EVERY = (INT, TERM, HUP)
CODES = {INT: 130, TERM: 143, HUP: 129}


class Left(BaseException):
    """The process would have ended here."""


def leave(code: int) -> None:
    raise Left(code)


@pytest.fixture
def signals() -> Iterator[EndSignals]:
    """Handlers of a command; the test's process has its own again afterwards."""
    ours = EndSignals(leave)
    before = ours.begin_command()
    yield ours
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", EVERY)
def test_a_signal_during_the_imports_is_kept_and_raised_by_the_command(
    signals: EndSignals, number: int
) -> None:
    signal.raise_signal(number)  # raises nothing
    with pytest.raises(Terminated) as raised, signals.raised():
        pytest.fail("the body ran")
    assert raised.value.code == CODES[number]
    assert isinstance(raised.value, (CtrlC, KeyboardInterrupt))


@pytest.mark.parametrize("number", EVERY)
def test_a_second_signal_ends_the_process_at_once_after_its_last_words(
    signals: EndSignals, number: int
) -> None:
    said: list[str] = []
    signals.last_words = lambda: said.append("ended")
    with pytest.raises(Terminated), signals.raised():
        signal.raise_signal(TERM)
    with pytest.raises(Left) as left:
        signal.raise_signal(number)
    assert left.value.args == (CODES[number],)
    assert said == ["ended"]


def test_last_words_that_fail_keep_no_process_alive(signals: EndSignals) -> None:
    signals.last_words = lambda: 1 / 0
    signals(TERM)
    with pytest.raises(Left):
        signals(TERM)


def test_a_signal_while_files_are_written_is_raised_after_them(signals: EndSignals) -> None:
    written = []

    @signals.noted()
    def write() -> None:
        signal.raise_signal(HUP)
        written.append("report")

    with pytest.raises(Terminated), signals.raised():
        write()
    assert written == ["report"]


def test_a_signal_whose_exception_was_dropped_is_raised_again(signals: EndSignals) -> None:
    with pytest.raises(Terminated), signals.raised(), suppress(KeyboardInterrupt):
        signal.raise_signal(TERM)  # dropped, as Python does in a finalizer
    with pytest.raises(Terminated):
        signals.check()


def test_an_interrupt_of_rays_own_is_named_by_the_signal_that_came(signals: EndSignals) -> None:
    @signals.raised()
    def get() -> None:
        try:
            signal.raise_signal(TERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # as Ray does in `ray.get`

    with pytest.raises(Terminated) as raised:
        get()
    assert raised.value.code == 143


def test_a_simulated_job_of_a_command_ends_at_once_by_the_second(signals: EndSignals) -> None:
    heard: list[str] = []

    @signals.heard_by(lambda: bool(heard.append("it")), breaks_off=True)
    def run() -> None:
        signals(INT)
        with pytest.raises(Left):
            signals(INT)

    with pytest.raises(Terminated):
        run()
    assert heard == ["it"]


def test_a_simulated_job_of_a_script_is_broken_off_by_each_later_signal() -> None:
    ours = EndSignals(leave)

    @ours.heard_by(lambda: False, breaks_off=True)
    def run() -> None:
        signal.raise_signal(TERM)
        for _ in range(2):
            with pytest.raises(CtrlC):
                signal.raise_signal(INT)

    with ours.caught(EVERY), pytest.raises(CtrlC):
        run()


def test_sighup_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(HUP, signal.SIG_IGN)
    ours = EndSignals(leave)
    try:
        with ours.command():
            assert signal.getsignal(HUP) is signal.SIG_IGN
            assert ours.handles(TERM)
        assert signal.getsignal(HUP) is signal.SIG_IGN
    finally:
        signal.signal(HUP, before)


def test_an_open_cluster_takes_signals_without_a_handler_and_gives_them_back() -> None:
    def theirs(*_: object) -> None: ...

    before = signal.signal(TERM, theirs)
    ours = EndSignals(leave)
    try:
        with ours.caught(FROM_OUTSIDE):
            assert signal.getsignal(TERM) is theirs
            assert ours.handles(HUP)
            with pytest.raises(Terminated):
                signal.raise_signal(HUP)
        assert signal.getsignal(HUP) is signal.SIG_DFL
        assert signal.getsignal(INT) is signal.default_int_handler
    finally:
        signal.signal(TERM, before)


def test_a_handler_that_the_user_sets_meanwhile_stays() -> None:
    def theirs(*_: object) -> None: ...

    ours = EndSignals(leave)
    with ours.caught(FROM_OUTSIDE):
        signal.signal(TERM, theirs)
    assert signal.getsignal(TERM) is theirs
    signal.signal(TERM, signal.SIG_DFL)


def test_a_signal_of_an_inner_context_is_forgotten_at_its_end() -> None:
    ours = EndSignals(leave)
    with ours.caught(FROM_OUTSIDE):  # a cluster
        with suppress(KeyboardInterrupt), ours.caught(EVERY):  # a simulated job
            signal.raise_signal(INT)
        ours.check()
        with pytest.raises(Terminated):  # the first, which does not end the process
            signal.raise_signal(TERM)


def test_a_signal_that_an_outer_context_handles_is_not_forgotten_within_it() -> None:
    ours = EndSignals(leave)
    with ours.caught(FROM_OUTSIDE):
        with suppress(KeyboardInterrupt), ours.caught(EVERY):
            signal.raise_signal(TERM)
        with pytest.raises(Terminated):
            ours.check()
        with pytest.raises(Left):
            signal.raise_signal(TERM)


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_clusters_the_last_that_closes_gives_handlers_back(first: int) -> None:
    ours = EndSignals(leave)
    clusters = [ours.caught(FROM_OUTSIDE), ours.caught(FROM_OUTSIDE)]
    for cluster in clusters:
        cluster.__enter__()
    clusters[first].__exit__(None, None, None)
    assert all(ours.handles(number) for number in FROM_OUTSIDE)
    clusters[1 - first].__exit__(None, None, None)
    assert [signal.getsignal(number) for number in FROM_OUTSIDE] == [signal.SIG_DFL] * 2


def test_a_simulated_job_of_a_script_stops_at_sigterm() -> None:
    hits: list[object] = []

    def hit(rows: object) -> None:
        hits.append(rows)
        if len(hits) == 1:
            signal.raise_signal(TERM)

    flow, numbers = ticking("stopped", seconds=20)
    numbers.sink("calls", sw.callback_sink(hit))
    job = sw.Simulation(nodes=1).submit(flow)
    with pytest.raises(Terminated):
        job.wait()
    assert job.report().state == "stopped"
    assert signal.getsignal(TERM) is signal.SIG_DFL


def test_ctrl_c_leaves_a_simulated_job_of_a_script_as_pythons_own_exception() -> None:
    hits: list[object] = []

    def hit(rows: object) -> None:
        hits.append(rows)
        if len(hits) == 1:
            signal.raise_signal(INT)

    flow, numbers = ticking("stopped", seconds=20)
    numbers.sink("calls", sw.callback_sink(hit))
    job = sw.Simulation(nodes=1).submit(flow)
    with pytest.raises(KeyboardInterrupt) as raised:
        job.wait()
    assert type(raised.value) is KeyboardInterrupt  # else Python exits with 1, not 130
    assert job.report().state == "stopped"


@pytest.mark.parametrize("broken", [CtrlC(), Terminated(TERM), ValueError("mine")])
def test_only_ctrl_c_has_another_class_for_the_user(broken: BaseException) -> None:
    plain = for_user(broken)
    assert type(plain) is (KeyboardInterrupt if type(broken) is CtrlC else type(broken))


class Nodes:
    """Nodes of a cluster that a signal meets as it closes."""

    is_simulated = True
    nodes: ClassVar[list[object]] = []
    free: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Closing:
    """Job whose close a signal meets."""

    def __init__(self, number: int) -> None:
        self.number, self.closed = number, False

    def close(self) -> None:
        signal.raise_signal(self.number)
        self.closed = True


@pytest.mark.parametrize("number", FROM_OUTSIDE)
def test_a_first_signal_while_a_cluster_closes_lets_its_jobs_end(number: int) -> None:
    nodes: Any = Nodes()
    cluster = sw.Cluster._opened(lambda: nodes)
    job: Any = Closing(number)
    cluster._jobs = [job]
    with pytest.raises(Terminated) as raised:
        cluster.close()
    assert raised.value.code == CODES[signal.Signals(number)]
    assert job.closed
    assert nodes.closed
    assert signal.getsignal(number) is signal.SIG_DFL
    assert main.END_SIGNALS.number is None


# -- the command ---------------------------------------------------------------------------


@pytest.fixture
def handlers() -> Iterator[None]:
    with pytest.raises(CtrlC), main.END_SIGNALS.command():
        yield


def strike(number: int) -> None:
    signal.raise_signal(number)


@pytest.mark.parametrize("number", EVERY)
@pytest.mark.parametrize("when", ["starts", "runs", "ends"])
@pytest.mark.parametrize("output", ["--json", "--out"])
def test_a_run_that_a_signal_ends_leaves_its_report_and_its_json(
    host: FakeHost, handlers: None, number: int, when: str, output: str
) -> None:
    if when == "starts":
        host.meanwhile = lambda: strike(number)
    elif when == "ends":
        host.closes = lambda: strike(number)
    else:
        host.job.reports, host.job.meanwhile = host.job.reports[:1], lambda: strike(number)
    done = call("run", "city.py", "--out", "here", *(["--json"] if output == "--json" else []))
    assert done.exit_code == CODES[number]
    assert host.closed
    assert "slackwater: interrupted" in done.stderr
    assert str(Path("here/report.json")) in done.stderr or when == "ends"
    kept = load_report(Path("here/report.json"))
    assert kept.state == ("done" if when == "ends" else "stopped")
    assert Path("here/latency.png").exists()
    if output == "--json":
        told = json.loads(done.stdout)
        assert "error" in told if when == "starts" else told["flow"] == "city"
    elif when != "starts":
        assert "balanced" in done.stdout


def test_a_flow_file_that_swallows_a_signal_does_not_begin_a_run(
    host: FakeHost, handlers: None
) -> None:
    swallows = "import contextlib, signal\nwith contextlib.suppress(BaseException):\n"
    write(f"{swallows}    signal.raise_signal(signal.SIGHUP)\nflow = Flow('city')\n")
    done = call("run", "city.py", "--out", "here", "--json")
    assert done.exit_code == 129
    assert json.loads(done.stdout)["error"]["kind"] == "Interrupted"
    assert not Path("here").exists()
    assert host.submitted == []


def test_a_signal_during_the_imports_ends_a_command_in_order(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("raise AssertionError('read')\n")
    code = (
        "import signal, sys\n"
        "from slackwater.cli import entry\n"
        "class Strikes:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pyarrow':\n"
        "            signal.raise_signal(signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Strikes())\n"
        f"sys.argv[1:] = ['run', {str(tmp_path / 'flow.py')!r}, '--json']\n"
        "entry.main()\n"
    )
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", code],
        cwd=Path(sw.__file__).parents[1],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 143, done.stderr
    assert done.stderr == "slackwater: interrupted\n"
    assert json.loads(done.stdout)["error"]["kind"] == "Interrupted"
