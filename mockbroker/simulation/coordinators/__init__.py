"""Coordinators: which broker serves a group, a transactional id or a share partition, and the
offsets that groups have committed.

``placement`` finds coordinators and follows them when they move; ``offsets`` keeps committed
offsets. Groups and transactions are layers above: they attach themselves here.
"""
