"""Damaged requests aimed at a broker: does it stay up, and does the mock do what Kafka does?

``address`` lets nobody aim at somebody else's broker by mistake, ``asking`` sends one request and
sees what becomes of it, ``run`` plays a seed, ``expected`` knows where the mock differs from Kafka.
"""
