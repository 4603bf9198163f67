"""Deliberate bugs in a sample client and a sample decoder, to measure whether the fuzzers find
them.

There are ten in each, selected one at a time by ``--bug``. Without one both are correct, and the
fuzzers must find nothing. ``python -m fuzz.planted --seconds 600`` measures the time to find each.
"""
