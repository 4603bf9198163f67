"""Kafka's own generated message classes, of several releases, queried over a pipe.

``Oracle.java`` is the program, ``build`` makes its class path, ``oracle`` talks to it, and
``pairs`` maps our messages to its classes. The oracle needs Java and Maven; importing it does not.
"""
