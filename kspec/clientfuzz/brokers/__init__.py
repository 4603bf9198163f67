"""Mutated requests sent to a broker: does it stay up, and does the mock do what Kafka does?

``address`` guards against fuzzing a remote broker by mistake, ``exchange`` sends one request and
classifies the result, ``run`` plays a seed, and ``expected`` lists where the mock differs from
Kafka.
"""
