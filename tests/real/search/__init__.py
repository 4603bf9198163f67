"""Requests from the schemas and short programs, played on real Kafka and on the mock at once.

``python -m tests.real.search`` plays many of them. A difference is made small, named by its
signature, played again on fresh clusters and stored as a program that tests replay.
"""
