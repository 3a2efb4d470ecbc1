"""Host of flows, a cluster or the simulator: flows are placed and explained."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.chosen.admission import (
    Admission,
    RunningFlow,
    admitted_plan,
    broken_by,
    check_admission,
)
from slackwater.runtime.model import Duration
from slackwater.runtime.model.hashes import KEY_GROUPS
from slackwater.runtime.other_names import SaysOurName
from slackwater.runtime.placement.key_shares import balanced
from slackwater.runtime.placement.place import open_slots
from slackwater.runtime.placement.placement_text import placement_lines
from slackwater.runtime.plan.beginning import beginning_lines
from slackwater.runtime.plan.plan import PlacedBy, Plan
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.plan.step import GatedStep
from slackwater.runtime.prepare.prepare import admit, prepare
from slackwater.runtime.tune import HOP_NS

if TYPE_CHECKING:
    from slackwater.runtime.foresight.chosen.plan_choice import PlanChoice
    from slackwater.runtime.foresight.observed.flow_sample import FlowSample
    from slackwater.runtime.foresight.predicted.asked import Ahead, PredictOptions
    from slackwater.runtime.foresight.predicted.prediction import Prediction
    from slackwater.runtime.foresight.predicted.replica_worth import ReplicaTable
    from slackwater.runtime.foresight.rates import Rate
    from slackwater.runtime.foresight.shared_cores import SharedCores
    from slackwater.runtime.simulate import CostModel, LinkModel
    from slackwater.sampling import History
    from slackwater.submitted import Planned

NOT_PREDICTED = (
    "no rates are known, so nothing is predicted; with rates= (on the command line --rate) "
    "latency, bottleneck and the best placement are"
)


def _nothing_predicted(problem: SettingError) -> str:
    return f"nothing is predicted: {problem}"


def _placed_by(plan: Plan) -> str:
    is_by_hand = set(plan.placed_by.values()) == {"placement"}
    return "placed by hand" if is_by_hand else "placed by the simple rule"


def _auto_text(flow: Dataflow, plan: Plan) -> str:
    """Return a text on steps with one replica for each slot, or ""."""
    names = [
        name for name, step in flow.steps.items() if isinstance(step, GatedStep) and step.is_auto
    ]
    if not names:
        return ""
    return (
        f'\nreplicas="auto" of {", ".join(names)} is {min(plan.offered, KEY_GROUPS)}, one for each '
        "slot: with rates= or a history it is as many as are worth it"
    )


def _by_search(searched: Plan, written: Plan) -> Plan:
    given = {name for name, by in written.placed_by.items() if by == "placement"}
    by: dict[str, PlacedBy] = {
        name: "placement" if name in given else "search" for name in searched.slots
    }
    return replace(searched, placed_by=by)


class FlowHost(SaysOurName, ABC):
    """Named nodes that flows are placed on; a context manager that closes its resources.

    Attributes:
        nodes: names of the nodes.
        slots: slots of the nodes: one for each core.
    """

    _called, _place = "a place to run flows", "nodes"

    nodes: list[str]
    slots: tuple[SlotPlace, ...]
    _free: Mapping[str, int] | None = None  # {node: number of slots with a free CPU}
    _hop_ns: int = HOP_NS  # least delay of a message between two slots
    _link: LinkModel | None = None  # links between nodes, if known
    _cost: CostModel | None = None  # cost of work; None if it takes real time

    def plan(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        rates: Mapping[str, Rate] | Rate | Prediction | None = None,
        sample: int | FlowSample = 1_000,
        admission: Admission | None = None,
    ) -> Plan:
        """Return the plan of a flow, without running it.

        Its `verdict` says whether it may run. Arguments and errors are those of `submit`.
        """
        by: Ahead = {"placement": placement, "limits": limits, "tuning": tuning}
        prediction: Prediction | None = None
        why_not: str | None = None
        if rates is not None:
            check_admission(admission, rates)
            prediction, why_not = self._predicted_if_known(flow, rates, sample, **by)
            if why_not is not None and admission == "reject":
                raise SettingError(
                    f"admission='reject' needs a prediction: {why_not}; or run it and say "
                    "so (admission='warn')"
                )
        else:
            prediction, why_not = self._remembered(flow, **by)
            check_admission(admission, prediction, why_not=why_not)
        if prediction is not None:
            return admitted_plan(prediction, admission)
        plan = self._balanced(flow, **by)
        notes = plan.verdict.notes if why_not is None else (*plan.verdict.notes, why_not)
        return replace(plan, verdict=replace(plan.verdict, notes=notes))

    def explain(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        rates: Mapping[str, Rate] | Rate | None = None,
        sample: int = 1_000,
        history: History | None = None,
    ) -> str:
        """Return the flow's graph, where each stage will run, and why some share a slot.

        With `rates` or `history` (as for `predict`), or the history of `tuning`, it also gives the
        latency, the bottleneck and its remedy; with `rates` and a sample also the other plans. If
        `submit` would refuse the flow, the last lines say why.
        """
        return self.explained(
            flow,
            placement=placement,
            limits=limits,
            tuning=tuning,
            rates=rates,
            sample=sample,
            history=history,
        )[0]

    def explained(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        rates: Mapping[str, Rate] | Rate | None = None,
        sample: int = 1_000,
        history: History | None = None,
    ) -> tuple[str, Plan]:
        """Return what `explain` does, and the plan that it is of."""
        from slackwater.runtime.foresight.observed_graph import SampleShowsNothing  # noqa: PLC0415

        by: Ahead = {"placement": placement, "limits": limits, "tuning": tuning}
        prediction: Prediction | None = None
        why_not: str | None = None
        plans = ""
        if history is not None:
            prediction = self.predict(flow, rates, history=history, **by)
        elif rates is not None:
            try:
                choice = self.choose_plan(flow, rates, sample=sample, **by)
            except SampleShowsNothing as problem:
                why_not = _nothing_predicted(problem)
            else:
                prediction, plans = choice.written.prediction, f"\n{choice.text()}"
        else:
            prediction, why_not = self._remembered(flow, **by)
        if prediction is None:
            plan = self._balanced(flow, **by)
            text = why_not or f"{_placed_by(plan)}: {NOT_PREDICTED}"
            text += _auto_text(flow, plan)
        else:
            plan = prediction.plan
            text = f"{prediction.placed_text()}\n\n{prediction.text()}{plans}"
            refused = admitted_plan(prediction, "reject").verdict.refusal
            text += "" if refused is None else f"\n\nwith admission='reject': {refused}"
        lines = [flow.explain(), "", "placement", *placement_lines(plan), ""]
        if plan.beginnings:
            lines += ["replay", *beginning_lines(plan.beginnings), ""]
        lines.append(text)
        if plan.verdict.refusal is not None:
            lines += ["", f"will be refused: {plan.verdict.refusal}"]
        return "\n".join(lines), plan

    def predict(  # noqa: PLR0913 - each by name
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate | None = None,
        *,
        sample: int | FlowSample = 1_000,
        history: History | None = None,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        horizon: Duration | None = None,
        width: Duration | None = None,
        seed: int = 0,
        speed: float | None = None,
        link: LinkModel | None = None,
        costs: Mapping[str, Duration] | None = None,
    ) -> Prediction:
        """Predict the latency of a flow here, and its bottleneck.

        Nothing runs on the nodes: the first rows of each source go through the flow in this
        process, and no sink is called. Stages that `placement` leaves open are placed by the simple
        rule, or by a search for the least latency, whichever is better; `submit` with the same
        rates places them in the same way. Source: [mace].

        Args:
            flow: flow to be submitted.
            rates: {source: events a second, an `OnOff` model, or a trace of counts}, or one for
                all sources together; the arrivals in the job of the history if None.
            sample: rows to sample of each source, or an earlier sample.
            history: instead of a sample, a folder in which earlier jobs of the flow have kept
                samples (`Tuning(history=…)`); nothing else is read.
            placement: {stage: slot or node} for some stages, or {"*": slot or node} for all.
            limits: limits of the submission.
            tuning: tuning as of `submit`.
            horizon: how long to look ahead. If None, 60 s, of a history's rates its whole length.
            width: width of a subinterval, w of [mace]. If None, 100 ms, more of 1,000 s and longer.
            speed: event time passes this many times faster than the clock; 1 where events happen as
                they arrive, so that higher rates mean more partners for each row of a join. If
                None, as the sources are paced; an unpaced source is as dense as in its sample.
            seed: seed of the draws of models of rates.
            link: links between the nodes, capacity and delay; those of this host if None.
            costs: {stage: time of one of its rows on a core, "2ms" or seconds}, in place of the
                sample's measurement.

        Raises:
            FlowError: the flow or the placement is wrong.
            SettingError: a source has no rate, or is live; or the sample gives no result; or the
                history has no statistics of this version of the flow.
        """
        from slackwater.runtime.foresight.chosen.replica_choice import (  # noqa: PLC0415 (who predicts)
            auto_steps,
        )
        from slackwater.runtime.foresight.observed.parts import with_replicas  # noqa: PLC0415
        from slackwater.runtime.foresight.predicted.asked import check_asked  # noqa: PLC0415

        options: PredictOptions = {
            "history": history,
            "placement": placement,
            "limits": limits,
            "tuning": tuning,
            "seed": seed,
            "speed": speed,
            "link": link,
            "costs": costs,
        }
        if horizon is not None:
            options["horizon"] = horizon
        if width is not None:
            options["width"] = width
        check_asked(flow, **options)
        if shared := auto_steps(flow, owns_keys=False):
            plan = self._placed(flow, placement=placement, limits=limits, tuning=tuning)
            flow = with_replicas(flow, shared, min(plan.offered, KEY_GROUPS))
        if steps := auto_steps(flow):
            return self._with_best_replicas(
                flow, rates, steps, sample=sample, is_auto=True, options=options
            )
        return self._predicted_as_written(flow, rates, sample=sample, options=options)

    def replica_table(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate | None = None,
        *,
        sample: int | FlowSample = 1_000,
        **options: Unpack[PredictOptions],
    ) -> ReplicaTable | None:
        """Predict what other numbers of replicas are worth: latency, highest rate, and limit.

        All steps with keys get the same number: 1, 2, 4 and so on up to the number of slots. If
        one has `replicas="auto"`, only those that have. Nothing runs but samples.

        Args:
            flow: flow to be submitted.
            rates: rates as for `predict`.
            sample: sample as for `predict`.
            **options: other options of `predict`, by their names.

        Returns:
            The table; None if no step can be divided by keys.

        Raises:
            FlowError, SettingError: as for `predict`.
        """
        from slackwater.runtime.foresight.chosen.replica_choice import (  # noqa: PLC0415
            auto_steps,
            divisible_steps,
        )
        from slackwater.runtime.foresight.predicted.asked import check_asked  # noqa: PLC0415

        check_asked(flow, **options)
        autos = auto_steps(flow)
        if not (steps := autos or divisible_steps(flow)):
            return None
        return self._with_best_replicas(
            flow, rates, steps, sample=sample, is_auto=bool(autos), options=options
        ).replicas

    def _with_best_replicas(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate | None,
        steps: Sequence[str],
        *,
        sample: int | FlowSample,
        is_auto: bool,
        options: PredictOptions,
    ) -> Prediction:
        """Return the prediction with the best number of replicas of some steps."""
        from slackwater.runtime.foresight.chosen.replica_choice import (  # noqa: PLC0415
            best_prediction,
            numbers_to_try,
        )
        from slackwater.runtime.foresight.observed.parts import (  # noqa: PLC0415
            SAMPLED,
            with_replicas,
        )
        from slackwater.sampling import statistics  # noqa: PLC0415

        placement, limits, history = (
            options.get("placement"),
            options.get("limits"),
            options.get("history"),
        )
        placed = partial(
            self._placed, placement=placement, limits=limits, tuning=options.get("tuning")
        )
        sharing = [flow.steps[name].traits.sharing for name in steps]
        written = {each.replicas for each in sharing if each.is_written and not is_auto}
        numbers = numbers_to_try(placed(flow).offered, written)
        # One slot for each is counted in steps of the same length as few slots are.
        channels = len(placed(with_replicas(flow, steps, numbers[-1])).channels)
        known = [n for n, each in zip(steps, sharing, strict=True) if each.is_written]
        samples: dict[int, tuple[FlowSample, Mapping[str, Rate] | Rate]] = {}

        def ask(number: int) -> Prediction:
            candidate = with_replicas(flow, known if number == 1 else steps, number)
            few = min(number, SAMPLED)  # fewer replicas than that are sampled as they are
            if few not in samples:
                samples[few] = statistics(
                    candidate,
                    rates,
                    sample=sample,
                    history=history,
                    limits=limits,
                    cost=self._cost,
                )
            shown, given = samples[few]
            own: PredictOptions = {**options, "history": None}
            return self._predicted_as_written(
                candidate, given, sample=shown, options=own, channels=channels
            )

        may_lack: list[type[Exception]] = [FlowError] if placement else []
        may_lack += [SettingError] if history is not None or options.get("costs") else []
        return best_prediction(numbers, ask, steps=steps, is_auto=is_auto, may_lack=tuple(may_lack))

    def _predicted_as_written(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate | None,
        *,
        sample: int | FlowSample,
        options: PredictOptions,
        channels: int = 0,
    ) -> Prediction:
        """Return the prediction of a flow with its numbers of replicas.

        Args:
            flow: flow with its numbers of replicas.
            rates: rates as for `predict`.
            sample: sample as for `predict`.
            options: other options of `predict`.
            channels: number of channels of the largest candidate; 0: the flow is none of several.
        """
        from slackwater.runtime.foresight.chosen.placements import (  # noqa: PLC0415 (who predicts)
            better_of,
            found_placement,
        )
        from slackwater.runtime.foresight.predicted.predicting import (  # noqa: PLC0415
            ahead_of,
            predict,
        )
        from slackwater.runtime.simulate import LinkModel  # noqa: PLC0415
        from slackwater.sampling import statistics  # noqa: PLC0415

        placement, limits = options.get("placement"), options.get("limits")
        link = options.get("link")
        seed = options.get("seed", 0)
        running = self._running()
        placed = partial(self._placed, flow, limits=limits, tuning=options.get("tuning"))
        plan = placed(placement=placement)
        sample, rates = statistics(
            flow,
            rates,
            sample=sample,
            history=options.get("history"),
            limits=limits,
            cost=self._cost,
        )
        horizon, width = ahead_of(
            rates,
            options.get("horizon"),
            options.get("width"),
            channels=channels or len(plan.channels),
        )
        if link is not None:
            link.check_nodes(self.nodes)
        far = link or self._link or LinkModel(delay_ns=self._hop_ns)
        predicted = partial(
            predict,
            sample=sample,
            rates=rates,
            slots=self.slots,
            horizon=horizon,
            width=width,
            link=far,
            machines=self._machines(running),
            speed=options.get("speed"),
            seed=seed,
            costs=options.get("costs"),
        )
        prediction = predicted(plan)
        places = self._open(plan, placement)
        # No placement helps a stage that alone is too much for a core.
        is_in_vain = bool(channels) and max(prediction.cores_by.values()) > 1
        if len(places) > 1 and prediction.has_backlog and not is_in_vain:
            best = found_placement(prediction, places, far, seed=seed)
            if best != dict(plan.slots):
                searched = predicted(_by_search(placed(placement=best), plan))
                prediction = better_of(prediction, searched)
        return self._beside(prediction, running)

    def _open(self, plan: Plan, placement: Mapping[str, str] | None) -> list[SlotPlace]:
        """Return the slots that a search may use."""
        places = open_slots(self.slots, placement=placement, free=self._free)
        return list({slot.name: slot for slot in (*places, *plan.places.values())}.values())

    def _beside(self, prediction: Prediction, running: Sequence[RunningFlow]) -> Prediction:
        """Return a prediction with its effects on flows that run here already."""
        beside = [flow.name for flow in running if not flow.is_known and prediction.machines]
        breaks = tuple(broken_by(prediction, running))
        return replace(prediction, breaks=breaks, beside=tuple(beside))

    def _predicted(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate | Prediction,
        sample: int | FlowSample,
        **by: Unpack[Ahead],
    ) -> Prediction:
        """Return the prediction of a flow that is to be submitted."""
        from slackwater.runtime.foresight.chosen.replica_choice import resolved  # noqa: PLC0415
        from slackwater.runtime.foresight.predicted.predicting import on_machines  # noqa: PLC0415
        from slackwater.runtime.foresight.predicted.prediction import Prediction  # noqa: PLC0415

        if not isinstance(rates, Prediction):
            return self.predict(flow, rates, sample=sample, **by)
        flow = resolved(flow, rates.plan)
        placed = partial(self._placed, flow, limits=by.get("limits"), tuning=by.get("tuning"))
        rates.check_is_of(placed(placement=None))
        plan = placed(placement={**rates.plan.slots, **(by.get("placement") or {})})
        rates.check_is_there(plan)
        running = self._running()
        plan = balanced(plan, rates.sample.key_rows)
        prediction = replace(rates, plan=replace(plan, placed_by=rates.plan.placed_by))
        return self._beside(on_machines(prediction, self._machines(running)), running)

    def _predicted_if_known(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate | Prediction,
        sample: int | FlowSample,
        **by: Unpack[Ahead],
    ) -> tuple[Prediction | None, str | None]:
        """Return the prediction of a flow, or None and the reason.

        A flow whose sample gives no results runs anyway.
        """
        from slackwater.runtime.foresight.observed_graph import SampleShowsNothing  # noqa: PLC0415

        try:
            return self._predicted(flow, rates, sample, **by), None
        except SampleShowsNothing as problem:
            return None, _nothing_predicted(problem)

    def _remembered(
        self, flow: Dataflow, **by: Unpack[Ahead]
    ) -> tuple[Prediction | None, str | None]:
        """Return the prediction from a flow's history, for its placement.

        Else None and the reason; both are None if there is no history.
        """
        tuning = by.get("tuning")
        if not isinstance(tuning, Tuning) or tuning.history is None:
            return None, None
        placement, limits = by.get("placement"), by.get("limits")
        plan = self._placed(flow, placement=placement, limits=limits, tuning=tuning)
        try:
            return self.predict(flow, history=tuning.history, **by), None
        except SettingError as problem:  # no reason not to run
            return None, f"{_placed_by(plan)}, no statistics: {problem}"

    def choose_plan(
        self,
        flow: Dataflow,
        rates: Mapping[str, Rate] | Rate,
        *,
        sample: int = 1_000,
        **ahead: Unpack[Ahead],
    ) -> PlanChoice:
        """Return the plan of least latency here, among plans with the same results.

        What it says (`.chosen.flow`) may be submitted in the flow's place; nothing does so by
        itself. Arguments and errors are those of `predict`. See
        `slackwater.runtime.foresight.chosen.plan_choice`.
        """
        from slackwater.runtime.foresight.chosen.plan_choice import choose_plan  # noqa: PLC0415
        from slackwater.sampling import sample_flow  # noqa: PLC0415 (only who predicts needs it)

        def sampled(candidate: Dataflow, limits: Limits) -> FlowSample:
            return sample_flow(candidate, rows=sample, limits=limits, cost=self._cost)

        return choose_plan(self, flow, rates, sample=sampled, **ahead)

    def _placed(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None,
        limits: Limits | None,
        tuning: Tuning | None,
    ) -> Plan:
        """Return the plan of a flow by the simple rule, except for `placement`."""
        return prepare(
            flow,
            self.slots,
            placement=placement,
            free=self._free,
            limits=limits,
            tuning=tuning,
            hop_ns=self._hop_ns,
        )

    def _balanced(self, flow: Dataflow, **by: Unpack[Ahead]) -> Plan:
        """Return the plan by the simple rule, with the rows of replicas balanced."""
        plan = self._placed(
            flow, placement=by.get("placement"), limits=by.get("limits"), tuning=by.get("tuning")
        )
        if not any(stage.replica for stage in plan.stages):
            return plan
        from slackwater.runtime.foresight.observed.first_keys import (  # noqa: PLC0415
            first_key_rows,
        )

        return balanced(plan, first_key_rows(plan))

    def _running(self) -> list[RunningFlow]:
        """Return the flows that run here, with their predicted needs if known."""
        return []

    def _machines(self, running: Sequence[RunningFlow]) -> list[SharedCores]:
        """Return the machines that may have fewer cores than slots."""
        del running
        return []

    def _ready(self, flow: Dataflow, how: Planned) -> Plan:
        """Return the plan of a flow that is about to run, and warn its user."""
        plan = admit(self.plan(flow, **how))
        for note in plan.verdict.notes:
            logging.getLogger("slackwater").warning("%s: %s", plan.flow, note)
        return plan

    @abstractmethod
    def close(self) -> None:
        """Release everything. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
