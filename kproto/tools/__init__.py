"""Kafka's command-line tools on our own admin client.

``options``, ``plan``, ``assignment``, ``throttles``, ``texts`` and ``properties`` are pure;
``reassign``, ``elections`` and ``topics`` are the tools themselves and talk to a cluster.
``kproto.cli.admin`` is their command line. Texts and options are those of Apache Kafka 4.x; where
releases differ, a comment says which one is followed.
"""
