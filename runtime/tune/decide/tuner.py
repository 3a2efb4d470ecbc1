"""SLTuner: slacks by its models or a simple rule, whichever has the better record.

```
samples ─▶ slowly decaying maximum ──┐ all are tried
        ─▶ trend-following           │ in the gates'   ─▶ RuleAccounts ─▶ SetRelease of the
        ─▶ decaying maximum, …       │ accounts                           ruling one, trials of all
        ─▶ models ([ssg] §5.2)  ─────┘
```

Source: [ssg] §4.2, §5.2 for the models. Differs: models rule only while their record is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from slackwater.runtime.config import Tuning
from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Trial
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.decide.accounts import RuleAccounts
from slackwater.runtime.tune.decide.model_rule import ModelRule
from slackwater.runtime.tune.decide.policies import make_split
from slackwater.runtime.tune.record.contract import SlackPolicy
from slackwater.runtime.tune.record.paths import Paths

SAFE_RULE, MODEL = "slowly decaying maximum", "model"
SIMPLE = (
    SAFE_RULE,
    "trend-following",
    "steady trend",
    "decaying maximum",
    "last second, by the clock",
)
"""Rules without a model, the safe one first; see `policies.SPLITS`."""


class SlackTuner:
    """Policy that sets the slacks of a flow by its deadline.

    Args:
        paths: paths of the flow.
        deadline_ns: deadline of the flow.
        tuning: settings of the user; see `Tuning`.
        history: samples of earlier runs, to begin with models and a record.
    """

    name = "sltuner"

    def __init__(
        self,
        paths: Paths,
        *,
        deadline_ns: int,
        tuning: Tuning,
        history: Iterable[StageSample] = (),
    ) -> None:
        recalled = list(history)
        self._paths = paths
        self._model = ModelRule(paths, deadline_ns=deadline_ns, tuning=tuning, history=recalled)
        self._rules: dict[str, SlackPolicy] = {
            name: make_split(paths, name, deadline_ns=deadline_ns) for name in SIMPLE
        }
        self._rules[MODEL] = self._model
        self._accounts = RuleAccounts(
            paths,
            list(self._rules),
            benefit=(MODEL,),
            deadline_ns=deadline_ns,
            probability=tuning.probability,
        )
        self._seconds = dict.fromkeys(self._rules, 0)
        for _, samples in groupby(recalled, key=attrgetter("second")):
            self._accounts.add({sample.subject: sample for sample in samples}, is_own=False)

    def begin(self) -> Sequence[SetRelease]:
        """Begin with the safe rule: models need a second before they predict."""
        return self._ruled({name: rule.begin() for name, rule in self._rules.items()})

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Ask all rules, and set the slacks of the rule with the best record."""
        self._accounts.add(samples)
        settings = self._ruled({n: rule.decide(second, samples) for n, rule in self._rules.items()})
        self._seconds[self._accounts.ruling] += 1
        return settings

    def status(self) -> Mapping[str, object]:
        """Return the status: seconds under each rule, and the reason of the last choice."""
        return {
            "seconds": {name: seconds for name, seconds in self._seconds.items() if seconds},
            "why": self._accounts.why,
            "records": self._accounts.status(),
            **self._model.status(),
        }

    def _ruled(self, wanted: Mapping[str, Sequence[SetRelease]]) -> Sequence[SetRelease]:
        trials: dict[Subject, list[Trial]] = {step: [] for step in self._paths.tuned}
        for name, settings in wanted.items():
            for setting in settings:
                trials[setting.subject].append(Trial(name, setting.rule))
        ruling = self._accounts.choose([name for name, settings in wanted.items() if settings])
        return [
            replace(setting, by=ruling, trials=tuple(trials[setting.subject]))
            for setting in wanted[ruling]
        ]
