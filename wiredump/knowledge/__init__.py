"""What one message says that is needed to read a later one: names of topic ids, fetch sessions,
which broker is of which cluster, reassignments under way.

::

    heard          one exchange, as far as knowledge needs it, from JSON bodies
    order          exchanges in the order of their requests, out of the order they come in
    topics         topic ids to names
    sessions       fetch sessions (KIP-227) to the partitions in force
    clusters       brokers' addresses to clusters
    reassignments  reassignments from asked to ended (KIP-455)

No files, no Parquet, no Spark. Each class is fed with ``Heard`` in the order of requests, keeps no
more than it says, and gives rows: whoever feeds the same gets the same rows, from a capture at hand
or from the tables ``requests`` and ``bodies``.
"""
