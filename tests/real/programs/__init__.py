"""Random programs of steps, played side by side on a real Kafka cluster and on the mock.

``python -m tests.real.programs`` (``make fidelity-programs``) plays many of them; ``tests/real``
plays a few in every run.
"""
