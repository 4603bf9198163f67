"""Sources of traffic, each to the items of ``wiredump.model``: captures, the mock's journals.

The modules are pure: they take events, entries or lines that somebody else reads.
"""
