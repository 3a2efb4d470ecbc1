"""Begin the command line: signals count from here on, the rest is imported after.

A signal that comes during the imports, which take a second, is noted, and acted on by the command.
"""

from slackwater.end_signals import END_SIGNALS

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    END_SIGNALS.begin_command()
    from slackwater.cli.main import main as run_command_line  # noqa: PLC0415 (takes a second)

    run_command_line()


if __name__ == "__main__":
    main()
