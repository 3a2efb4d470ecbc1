"""How a source's rows are put in order: the policies, and what they hold."""

from runtime.order.aq_k_slack import AqKSlack, aq_k_slack
from runtime.order.coverage import error_within
from runtime.order.k_slack import KSlack, MpKSlack, k_slack, mp_k_slack
from runtime.order.ldop import Ldop, ldop
from runtime.order.reorder import AsTheyCome, OrderedOrRefused, Reorder, Reordering, SortedWithin

OURS = (OrderedOrRefused, AsTheyCome, SortedWithin, KSlack, MpKSlack, AqKSlack, Ldop)
"""Those that call no code of the user's."""

__all__ = [
    "OURS",
    "Reorder",
    "Reordering",
    "aq_k_slack",
    "error_within",
    "k_slack",
    "ldop",
    "mp_k_slack",
]
