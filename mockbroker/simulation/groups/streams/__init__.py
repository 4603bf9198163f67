"""Streams groups (KIP-1071): applications of Kafka Streams, whose tasks the broker assigns.

A task is a partition of a subtopology. ``topology`` decides how many there are and which internal
topics they need, ``task_assignor`` assigns them, ``streams_rules`` and ``task_reconciliation`` hold
the rules.
"""
