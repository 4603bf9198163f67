"""Kafka's own generated message classes, of one release or several, asked over a pipe.

``Oracle.java`` is the program, ``build`` makes its class path, ``oracle`` asks it, ``pairs`` knows
which class is which message of ours. Needs Java and Maven; imports nothing of them by itself.
"""
