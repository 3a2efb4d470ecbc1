"""The contract of hosts (`tests/contract/test_hosts.py`), kept by a cluster."""

from __future__ import annotations

import pytest

import slackwater as sw
from tests.contract.test_hosts import (
    test_a_failure_is_named_with_what_its_slot_was_given_last_and_ended_sinks_stay_done,
    test_a_sink_settles_at_its_own_end_of_stream_and_a_stop_publishes_the_rest,
    test_rows_balance_come_out_in_one_order_and_no_latency_is_below_zero,
)
from tests.support.hosts import Host, OnRay

__all__ = [
    "test_a_failure_is_named_with_what_its_slot_was_given_last_and_ended_sinks_stay_done",
    "test_a_sink_settles_at_its_own_end_of_stream_and_a_stop_publishes_the_rest",
    "test_rows_balance_come_out_in_one_order_and_no_latency_is_below_zero",
]

pytestmark = pytest.mark.ray


@pytest.fixture
def host(cluster: sw.Cluster) -> Host:
    return OnRay(cluster)
