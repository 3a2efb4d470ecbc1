"""Late rows that are passed on: each leaves where it came."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, concat_batches
from slackwater.runtime.order.reorder import Reordering


def put_around_late(
    order: Reordering, rows: Batch, is_late: BoolArray, promised_ns: memoryview[int]
) -> tuple[Batch, Batch]:
    """Put the rows between late ones in order, and let the late ones leave.

    Args:
        order: takes what is not late.
        rows: some of them late.
        is_late: shape (rows,).
        promised_ns: shape (rows,), from each row on.

    Returns:
        (What leaves up to the last late row, that one included, or to the last run of them; what
        comes after it, still to be put.)
    """
    count = len(is_late)
    edges = [0, *(np.flatnonzero(is_late[1:] != is_late[:-1]) + 1).tolist(), count]
    left = []
    for first, behind in pairwise(edges):
        piece: Batch | None = rows.slice(first, behind)
        if piece is not None and not is_late[first]:
            if behind == count:
                break
            piece = order.put(piece, promised_ns[behind - 1])
        if piece is not None:
            left.append(piece)
    return concat_batches(left), rows.slice(count if is_late[-1] else edges[-2], count)
