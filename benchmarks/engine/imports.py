"""What imports hold, one after the other, in the interpreter that runs this file as a program.

    python -P benchmarks/engine/imports.py ray numpy,pyarrow

prints a line for the interpreter as it is, and one behind each group: MB of RSS, of its own, of
PSS, modules; then the names of all modules. It imports nothing before that itself.
"""

import sys

NAMES = ("Rss", "Private_Dirty", "Pss")  # as `held.py` has them


def line() -> str:
    """Return what the process holds now."""
    kb = dict.fromkeys(NAMES, 0)
    with open("/proc/self/smaps_rollup") as file:  # pathlib is an import, too
        for one in file:
            name, _, value = one.partition(":")
            if name in kb:
                kb[name] = int(value.split()[0])
    return " ".join(str(kb[name] / 1024) for name in NAMES) + f" {len(sys.modules)}"


def main(groups: list[str]) -> None:
    """Import these groups, the names of each with commas between."""
    print(line(), flush=True)
    for group in groups:
        for name in group.split(","):
            __import__(name)
        print(line(), flush=True)
    print(*sys.modules)


if __name__ == "__main__":
    main(sys.argv[1:])
