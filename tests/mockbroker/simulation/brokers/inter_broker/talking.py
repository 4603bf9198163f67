"""Mock clusters whose controller talks to its brokers, whatever the profile."""

from functools import partial

from mockbroker.running.mock_cluster import MockCluster

__all__ = ["talking"]

talking = partial(MockCluster, inter_broker=True)
