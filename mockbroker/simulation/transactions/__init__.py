"""Transactions: coordinators, the markers that end transactions, and their verification.

``coordinator`` runs the rules of ``tables`` on the state of each transactional id. ``markers``
writes the ends of transactions to the partitions, and ``verification`` asks a coordinator whether
a producer may write to a partition; their rules are in ``partition_tables``.
"""
