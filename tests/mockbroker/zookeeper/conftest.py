"""The two places a cluster can keep its znodes: this process, and a real ZooKeeper."""

from tests.znodes.conftest import place, store, zookeeper

__all__ = ["place", "store", "zookeeper"]
