"""Versions of stages: a digest of what each does with a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from slackwater.runtime.plan.canonical import canonical_work
from slackwater.runtime.plan.plan import Stage

__all__ = ["other_stages", "stage_versions"]


def stage_versions(stages: Iterable[Stage]) -> dict[str, str]:
    """Return {stage: digest of what it does with a row}; another digest is another version.

    Equal parts of a step are one, under the name of the step (`Stage.whole`).
    """
    texts = {
        stage.whole: "\n".join(
            [
                canonical_work(stage.step, name=stage.whole),
                *(canonical_work(step, name=step.name) for step in stage.chain),
            ]
        )
        for stage in stages
    }
    return {
        name: sha256(text.encode(errors="surrogatepass")).hexdigest()
        for name, text in texts.items()
    }


def other_stages(now: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """Return the stages that differ between two versions of a flow, sorted."""
    names = now.keys() | before.keys()
    return sorted(name for name in names if now.get(name) != before.get(name))
