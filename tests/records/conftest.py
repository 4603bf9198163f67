"""Every test of records runs on each engine there is, those beside Kafka's own classes too."""

from tests.support.engines import each_engine

__all__ = ["each_engine"]
