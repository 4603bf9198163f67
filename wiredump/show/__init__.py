"""Exchanges and anomalies for eyes: lines, hex views and JSON objects out of ``Item``s.

::

    filters    which items to show
    told       an exchange with what it says, decoded once and without its secrets
    lines      one line an exchange, one an anomaly
    hexes      the bytes of its frames, annotated
    records    the same as JSON objects
    summary    what all of it came to

No files and no terminal here: ``wiredump.cli`` owns those. Whatever a peer sent, texts hold
printable characters only.
"""
