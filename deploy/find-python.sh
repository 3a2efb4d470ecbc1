#!/usr/bin/env bash
# Print a Python that Slackwater runs on, or say what to install. Used by `make setup`.
# PYTHON=<command or path> overrides the search.
set -euo pipefail

in_range='import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))'

for candidate in ${PYTHON:-python3 python3.12 python3.11}; do
  # Being on PATH is not enough: some version managers put names there that run nothing.
  if "$candidate" -c "$in_range" >/dev/null 2>&1; then
    if ! "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
      echo "setup: $candidate cannot make virtual environments; install its venv package" \
        "(Debian, Ubuntu: apt-get install $("$candidate" -c \
        'import sys; print("python%d.%d-venv" % sys.version_info[:2])')) and run make again" >&2
      continue
    fi
    echo "$candidate"
    exit 0
  fi
done

found="$(python3 --version 2>/dev/null || echo 'no python3')"
echo "setup: Slackwater needs Python 3.11 or 3.12 and found ${PYTHON:-$found}; install one of them" \
  "(Debian, Ubuntu: apt-get install python3.11 python3.11-venv)," \
  "or name yours: make setup PYTHON=/path/to/python3.12" >&2
exit 1
