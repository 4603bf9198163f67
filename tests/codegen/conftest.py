"""Every test of a codec runs on each engine there is."""

from tests.support.engines import each_engine

__all__ = ["each_engine"]
