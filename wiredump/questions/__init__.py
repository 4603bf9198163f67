"""Ask tables in SQL: DuckDB over the Parquet files, and saved questions.

::

    database   a query's tables, and its answer
    clients    the requests of each client, for an audit
    saved      questions by name; each is a file of SQL in ``queries``
"""
