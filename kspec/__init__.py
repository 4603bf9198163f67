"""The conformance suite for Kafka clients: cases as data, and what plays and judges them.

``model`` is what a case is, ``reading`` where it comes from; ``wire`` and ``kinds`` ask the journal
and the client's answers, ``judge`` gives the verdict, ``results`` and ``report`` tell it: none of
these knows a file, a socket or a clock. ``runner`` does; ``adapters`` are programs that drive real
clients, ``wrong`` is a client to be wrong with.
"""
