"""Transactions: coordinators, the markers that end transactions, and their verification.

``transaction_coordinators`` applies ``transaction_rules`` to the state of each transactional id.
``markers`` writes the ends of transactions to the partitions, and ``verification`` asks a
coordinator whether a producer may write to a partition; ``partition_rules`` has their rules.
"""
