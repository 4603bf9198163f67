"""Random programs of the data plane, played side by side on a real Kafka cluster and on the mock.

``make fidelity-programs ARGS="--data"`` plays many of them; ``tests/real`` plays a few in every
run. The minimiser is that of ``tests.real.programs``; requests and comparisons are those of
``tests.real.data``.
"""
