"""Policies of order, by the words that users write, and the check of custom ones."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal

from slackwater.runtime.errors import SettingError
from slackwater.runtime.order.aq_k_slack import AqKSlack
from slackwater.runtime.order.k_slack import KSlack, MpKSlack
from slackwater.runtime.order.ldop import Ldop
from slackwater.runtime.order.reorder import AsTheyCome, OrderedOrRefused, Reorder, SortedWithin
from slackwater.runtime.order.sequence import BySequence, by_sequence
from slackwater.runtime.shown import shown

__all__ = ["OURS", "OrderWord", "reorder_of"]

OrderWord = Literal["error", "sort", "late", "sequence"]

OURS = (
    OrderedOrRefused,
    AsTheyCome,
    SortedWithin,
    BySequence,
    KSlack,
    MpKSlack,
    AqKSlack,
    Ldop,
)
"""Policies that call no code of the user."""

_WITHIN: dict[str, Callable[[int], Reorder]] = {
    "error": OrderedOrRefused,
    "late": AsTheyCome,
    "sort": SortedWithin,
}
_MEMBERS = ("text", "refuses", "sorts", "may_mix", "passes_late", "longest_ns", "begin")


def reorder_of(out_of_order: OrderWord | Reorder, disorder_ns: int) -> Reorder:
    """Return the policy of a source's settings.

    Args:
        out_of_order: a word for one of ours, or a policy.
        disorder_ns: how far rows may be out of order; 0 if not set.

    Raises:
        SettingError: `out_of_order` is neither; or a policy with its own bound also got a disorder.
    """
    if not isinstance(out_of_order, str):
        _refuse_no_reorder(out_of_order)
        policy: Reorder = out_of_order
    elif out_of_order in _WITHIN:
        return _WITHIN[out_of_order](disorder_ns)
    elif out_of_order == "sequence":
        policy = by_sequence()
    else:
        raise SettingError(
            f"out_of_order={shown(out_of_order)} must be 'error', 'sort', 'late' or 'sequence', or "
            "an order such as sw.order.k_slack('2s')"
        )
    if disorder_ns:
        raise SettingError(
            f"disorder= is for out_of_order='error', 'sort' and 'late'; {shown(out_of_order)} has "
            "its own bound; omit disorder"
        )
    return policy


def _refuse_no_reorder(given: Any) -> None:
    missing = [name for name in _MEMBERS if not hasattr(given, name)]
    if missing or isinstance(given, type):
        what = f"it has no {missing[0]}" if missing else "it is a class: make one"
        if isinstance(given, FunctionType):
            what = f"it is a function: call it, {given.__name__}(…)"
        raise SettingError(
            f"out_of_order={shown(given)} is not a Reorder: {what}; write 'error', 'sort', 'late' "
            "or 'sequence', or an order such as sw.order.k_slack('2s')"
        )
