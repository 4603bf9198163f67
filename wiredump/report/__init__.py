"""One page out of the tables.

::

    measured   what a folder of tables comes to: counts, percentiles, lists cut at a limit
    requests   the part of it that takes every row of requests
    plots      figures as SVG (matplotlib: no script, and nothing to fetch)
    html       pieces of HTML, everything from outside escaped
    page       all of it together
"""
