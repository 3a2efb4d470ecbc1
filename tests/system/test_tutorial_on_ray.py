"""The tutorial's page on nodes, typed: the flow of the page before it, on Ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.typed_pages import typed

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = pytest.mark.ray


@pytest.mark.timeout(300)  # two clusters, and two replays of 12 s
def test_the_flow_of_the_tutorial_runs_on_nodes_as_its_page_shows(tmp_path: Path) -> None:
    assert not typed(DOCS / "tutorial.md", tmp_path, only="python data.py")
    assert not typed(DOCS / "tutorial-late-events.md", tmp_path, only="no command")
    differences = typed(DOCS / "tutorial-nodes.md", tmp_path)
    assert not differences, "\n\n".join(differences)
