"""Ways to run a flow: its replicas, nodes, placement, cuts into slices, and batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import slackwater as sw
from benchmarks.engine.random_flows.twin import one_of
from benchmarks.engine.replicated_flows.draw import Drawn, ReplicatedFlow
from slackwater.runtime.plan.plan import plan_stages

REPLICAS = (1, 2, 3, 7)
"""Numbers of replicas that are drawn."""


@dataclass(frozen=True)
class Way:
    """How one run goes.

    Attributes:
        replicas: of the steps that have them, in turn; None: not written.
        placed: a seed that draws a place for some stages; None: by the rule.
        settings: of the simulator.
    """

    replicas: tuple[int, ...] | None = (1,)
    batch_rows: int = 65_536
    nodes: int = 1
    placed: int | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def made(self, flow: ReplicatedFlow, **how: Any) -> Drawn:
        """Return the flow with the replicas of this way."""
        return flow.made(self.replicas, batch_rows=self.batch_rows, **how)

    @property
    def seed(self) -> int:
        """Seed of the simulator."""
        return int(self.settings.get("seed", 0))

    def models(self) -> tuple[sw.testing.CostModel, sw.testing.LinkModel]:
        """Return the costs of work and the delays of links, with their jitter."""
        cost = sw.testing.CostModel(jitter=self.settings.get("jitter", 0.0))
        return cost, sw.testing.LinkModel(jitter_ns=self.settings.get("link_ns", 0))

    def submitted(self, drawn: Drawn, **how: Any) -> sw.testing.SimulatedJob:
        """Return a job of the simulator."""
        cost, link = self.models()
        host = sw.Simulation(nodes=self.nodes, seed=self.seed, cost=cost, link=link)
        return host.submit(
            drawn.flow, limits=sw.Limits(**self.limits), placement=self.placement(drawn), **how
        )

    def placement(self, drawn: Drawn) -> dict[str, str] | None:
        """Return a place for about half of the stages."""
        if self.placed is None:
            return None
        rng = np.random.default_rng(self.placed)
        stages = plan_stages(drawn.flow.graph, fuse=self.limits.get("fuse", True))
        return {
            stage.name: f"node-{rng.integers(1, self.nodes + 1)}"
            for stage in stages
            if rng.random() < 0.5
        }


ONE_SLOT = Way()
"""The way that others are compared with: `replicas=1`, in one slot."""
UNWRITTEN = Way(replicas=None)
"""`replicas` written nowhere."""


def draw_way(rng: np.random.Generator) -> Way:
    """Return a way at random, its limits often so small that slices are cut."""
    limits: dict[str, Any] = {
        "credit_rows": int(one_of(rng, [8, 16, 200, 65_536])),
        "gate_rows": int(one_of(rng, [8, 30, 262_144])),
        "max_slice_rows": int(one_of(rng, [1, 5, 40, 10_000])),
        "source_gap_ns": int(one_of(rng, [1, 350_000, 5_000_000])),
        "fuse": bool(rng.random() < 0.7),
        "promise_gap_ns": int(one_of(rng, [1, 100_000, 20_000_000])),
    }
    limits["min_slice_rows"] = 1 if limits["max_slice_rows"] < 1_000 else 1_000
    return Way(
        replicas=tuple(int(one_of(rng, REPLICAS)) for _ in range(3)),
        batch_rows=int(one_of(rng, [1, 7, 50, 65_536])),
        nodes=int(rng.integers(1, 5)),
        placed=int(rng.integers(1 << 30)) if rng.random() < 0.5 else None,
        limits=limits,
        settings={
            "seed": int(rng.integers(1 << 30)),
            "link_ns": int(one_of(rng, [0, 10**5, 10**8])),
            "jitter": float(one_of(rng, [0, 1, 20])),
        },
    )
