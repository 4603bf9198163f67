"""Turn ``Item``s into text and JSON for ``wiredump show``: lines, hex views and objects.

::

    filters        select items
    exchange_view  an exchange with its content, decoded once and without secrets
    lines          one line per exchange or anomaly
    hexes          annotated bytes of the frames
    records        the same as JSON objects
    summary        totals

No files and no terminal: ``wiredump.cli`` owns those. All text contains printable characters only,
whatever a peer sent.
"""
