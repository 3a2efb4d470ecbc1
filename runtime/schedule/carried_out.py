"""Commands are carried out on a stage."""

from __future__ import annotations

from slackwater.runtime.control.commands import Command, Move, SetRelease, Shed, Warn, refusal
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.schedule.stage import StageMachine


def check_command(machine: StageMachine, command: Command) -> None:
    """Check that a slot can carry a command out.

    Raises:
        SettingError: it cannot; the stage sheds nothing; its gate was planned as ready-only.
    """
    if isinstance(command, Move | Warn):
        raise SettingError(refusal(command))
    if isinstance(command, Shed):
        if not machine.stage.sheds:
            raise SettingError(
                f"stage {command.stage!r} sheds nothing; only a pattern does, with "
                "shed=sw.shedding.espice(latency=…)"
            )
    elif machine.stage.is_ready_only and command.rule != READY_ONLY:
        raise SettingError(
            f"stage {command.stage!r} was planned as ready-only, so steps after it count "
            "on its order; give the flow a deadline, or the step a slack to begin with"
        )


def carry_out(machine: StageMachine, command: Command) -> None:
    """Do what a command says, from the next slice on.

    Raises:
        SettingError: the stage has no gate, or one that cannot hold rows by the clock.
    """
    if isinstance(command, Shed):
        assert machine.operator is not None, "its step sheds"
        machine.operator.reckon_with(command.rest_ns)
    elif isinstance(command, SetRelease):
        try:
            machine.set_rule(command.rule, trials=command.trials)
        except SettingError as problem:
            raise SettingError(f"stage {command.stage!r}: {problem}") from None
