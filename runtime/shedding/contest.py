"""A contest uses the richer of two models only where it loses fewer matches.

Both learn from the same windows. A feature that tells nothing apart makes a model worse, for it has
fewer events of each kind; whether it does is not known before it is tried. So each match is held
against both models before they learn from it: how likely would either have lost it, had as much
been dropped? The question is asked for several amounts, since a feature may be worth it when half
of all events go, and not when a sixth does.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.espice import EspiceShedder
from slackwater.runtime.shedding.evidence import Evidence
from slackwater.runtime.shedding.featured import FeaturedShedder
from slackwater.runtime.shedding.places import Sizes
from slackwater.runtime.shedding.settings import Model
from slackwater.runtime.shedding.shedder import Learning, Shedder
from slackwater.runtime.shedding.spans import Dropped, Spans
from slackwater.runtime.shedding.windows import FinishedWindows

SHARES = (1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6)
"""Shares of a window's events at which the models are compared; the nearest one decides."""


class ContestShedder(Shedder):
    """eSPICE, with a feature or without, whichever loses fewer matches.

    Args:
        model: the settings that both models learn and cut by.
        seed: the seed of the draws, which are the same whichever is used.

    Source: [espice], and gSPICE (arXiv 2309.16405) for the richer model. Ours: the choice, by
    prequential validation (Dawid 1984): each window judges before it teaches.
    """

    STATE = Shedder.STATE + Fields("_plain", "_richer", "evidence", "_at")
    is_by_window = True

    def __init__(self, model: Model, *, seed: int) -> None:
        super().__init__(seed=seed, explore=model.explore, sample=model.sample)
        self._plain = EspiceShedder(model, seed=seed)
        self._richer = FeaturedShedder(model, seed=seed)
        self.evidence = Evidence(len(SHARES))
        self._at = 0
        self._weigh()

    @property
    def model(self) -> EspiceShedder:
        """The model that is used at this amount."""
        return self._richer if self.evidence.is_better[self._at] else self._plain

    @property
    def learning(self) -> Learning:  # noqa: D102
        evidence = self.evidence
        return self.model.learning._replace(
            compared=evidence.matches, lost_shares=evidence.lost_shares(self._at)
        )

    @property
    def size(self) -> float:  # noqa: D102
        return self._plain.size

    @property
    def is_trained(self) -> bool:  # noqa: D102
        return self.model.is_trained

    @property
    def ranked_by(self) -> str:  # noqa: D102
        return self.model.ranked_by

    def learn(self, finished: FinishedWindows) -> None:
        """Hold windows that are over against both models, then learn from them."""
        begin = 0
        while begin < len(finished):
            end = min(begin + min(self._plain.left, self.evidence.left), len(finished))
            part = finished.part(begin, end)
            self._judge(part)
            turns, changes = self._plain.turns, self._plain.changes
            self._plain.learn(part)
            self._richer.learn(part)
            if self._plain.changes != changes:
                self.evidence = Evidence(len(SHARES))  # the evidence was of another stream
            if self._plain.turns != turns:
                self.evidence.fade()
                self._weigh()
            begin = end
        self.model.aim(self._amount)  # the model in use may have changed

    def _judge(self, part: FinishedWindows) -> None:
        if not (self._plain.is_trained and self._richer.is_trained):
            return
        hits = part.hits
        begins = np.flatnonzero(np.diff(part.matches, prepend=-1))
        lost = np.zeros((2, len(SHARES), len(begins)))
        if len(begins):
            sizes = part.sizes[hits.windows]
            for of_model, model, chances in zip(
                lost, (self._plain, self._richer), self._chances, strict=True
            ):
                utilities = model.utilities(
                    hits.types, hits.positions, sizes=sizes, features=hits.features
                )
                intact = 1.0 - chances[:, utilities]
                of_model[:] = 1.0 - np.multiply.reduceat(intact, begins, axis=1)
        self.evidence.add(lost, len(part))

    def _weigh(self) -> None:
        self._chances = [model.chances_at(SHARES) for model in (self._plain, self._richer)]

    def _aimed(self) -> None:
        if self._amount is not None:
            off = [abs(self._amount.share - share) for share in SHARES]
            self._at = off.index(min(off))
        self.model.aim(self._amount)

    def chances(  # noqa: D102
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None,
    ) -> FloatArray:
        return self.model.chances(types, positions, sizes=sizes, features=features)

    def worths(  # noqa: D102
        self,
        types: Int64Array,
        positions: Int64Array,
        *,
        sizes: Sizes,
        features: Int64Array | None = None,
    ) -> FloatArray | None:
        return self.model.worths(types, positions, sizes=sizes, features=features)

    def bounds(  # noqa: D102
        self, types: Int64Array, features: Int64Array | None
    ) -> tuple[FloatArray, FloatArray]:
        return self.model.bounds(types, features)

    def drop_spans(  # noqa: D102
        self,
        types: Int64Array,
        spans: Spans,
        *,
        events: Int64Array,
        features: Int64Array | None = None,
    ) -> Dropped:
        return self.model.drop_spans(types, spans, events=events, features=features)

    def derive(self) -> None:  # noqa: D102
        self._weigh()
        super().derive()
