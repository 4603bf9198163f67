"""A correct client, small enough to read.

``link`` is one connection, ``client`` answers the calls of the adapter protocol. Each rule of the
protocol is a method of its own, so that a class of ``kspec.defects`` can break just that one.
Nothing here knows the defects.
"""
