"""Kafka's own generated message classes, queried over a pipe: those of several releases, and those
that Kafka's generator makes of a draft.

``java/Oracle.java`` is the program, ``build`` makes its class path, ``oracle`` talks to it, and
``pairs`` maps our messages to its classes. ``generator`` runs Kafka's generator over a folder of
schemas, and ``drafts`` compares its classes with our codec. All of it needs Java and Maven;
importing it does not.
"""
