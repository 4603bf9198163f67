"""Kafka's command-line tools, on our own admin client: what they ask, print and refuse.

``options``, ``plan``, ``assignment``, ``throttles``, ``texts`` and ``properties`` only compute;
``reassign``, ``elections`` and ``topics`` are the tools themselves and talk to a cluster. The
command line on top is ``kproto.cli.admin``. Texts and options are those of Apache Kafka 4.x; where
its releases differ the place says which one is followed.
"""
