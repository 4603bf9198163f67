"""Ask tables in SQL: one text for DuckDB, here, and Spark (``wiredump.spark.views``).

::

    answers    what answers queries, and the functions that these may use
    database   a query's tables, and a folder that DuckDB queries
    clients    the requests of each client, for an audit
    saved      questions by name; each is a file of SQL in ``queries``
"""
