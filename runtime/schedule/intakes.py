"""Choice of a stage's intake, by what holds its rows."""

from __future__ import annotations

from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.merge import ReplicaReads, SlackGate
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.schedule.intake import GateIntake, Intake, PassIntake
from slackwater.runtime.schedule.partitioned_intake import PartitionedIntake
from slackwater.runtime.schedule.queues import PathQueues
from slackwater.runtime.schedule.stage_sampler import StageSampler

__all__ = ["intake_of"]


def intake_of(
    stage: Stage,
    queues: PathQueues,
    report: StageReport,
    sampler: StageSampler | None,
    *,
    start_ns: int,
    held: SlackGate | ReplicaReads | None,
) -> Intake:
    """Return the intake of a stage: its gate's, a replica's, or one without a gate."""
    if isinstance(held, SlackGate):
        return GateIntake(stage, queues, report, sampler, start_ns=start_ns, held=held)
    if isinstance(held, ReplicaReads):
        return PartitionedIntake(stage, queues, report, sampler, start_ns=start_ns, held=held)
    return PassIntake(stage, queues, report, sampler)
