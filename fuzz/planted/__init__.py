"""Bugs planted in a sample client and in a sample decoder: do the fuzzers find them?

Ten in each, one at a time, chosen by ``--bug``; without one both are right, and nothing may be
found in them. ``python -m fuzz.planted --seconds 600`` measures how long each takes to be found.
"""
