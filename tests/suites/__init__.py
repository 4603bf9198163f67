"""Test suites of Kafka clients, run against the mock and against real Kafka: ``make suites``.

The suites are those that clients ship for their own use. None of them knows a mock, so each test
that passes on Kafka and fails on the mock is a difference. ``model`` says what a suite is,
``targets`` starts the clusters, ``expectations`` keeps the result of every test, ``catalog`` lists
the suites. This is no folder of ordinary tests; ``test_suites.py`` runs a few tests of each suite.
"""
