"""How a source's rows are put in order: the policies, and what they hold."""

from runtime.order.reorder import Reorder, Reordering

__all__ = ["Reorder", "Reordering"]
