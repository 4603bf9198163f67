"""A client to be wrong with: a correct one, small enough to read, and its named misbehaviours.

A case nobody can fail is no case. ``link`` (one connection) and ``client`` (the calls) are written
so that each rule they keep is a method of its own; a misbehaviour overrides one and breaks just
that rule. ``kspec misbehaviours`` lists them; ``--client reference`` is the correct one, and
``--client wrong:NAME`` one that misbehaves. ``python -m kspec.wrong [NAME]`` is either, as an
adapter.
"""
