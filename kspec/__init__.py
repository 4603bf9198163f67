"""The conformance suite for Kafka clients: cases as data, and the code that plays and judges them.

``model`` defines a case and ``case_parser`` reads one. ``wire`` queries the journal, ``kinds``
classifies errors, ``judge`` gives the verdict, and ``results`` and ``report`` present it. None of
these touches a file, a socket or a clock; ``runner`` does. ``adapters`` holds programs that drive
real clients. ``wrong`` holds a reference client and its deliberate defects. ``clientfuzz`` fuzzes
clients.
"""
