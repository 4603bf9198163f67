"""Wrong clients by search: the reference client with one place of its source changed.

``mutations`` makes them from the syntax tree, ``mutant_client`` imports one, ``coverage`` records
which case runs which line, ``fingerprint`` compares plays, and ``search`` plays the defects in
processes of their own. What no case catches is a hole in the suite.
"""
