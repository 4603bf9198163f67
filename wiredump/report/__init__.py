"""One page out of the tables.

::

    measured   what a folder of tables comes to: counts, percentiles, lists cut at a limit
    requests   the part of it that takes every row of requests
    plots      figures as SVG (matplotlib: no script, and nothing to fetch)
    blocks     what sections consist of: notes, tables, figures
    page       all of it together; the markup is in templates
"""
