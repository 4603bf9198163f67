"""A reference client, small enough to read, and its deliberate defects.

A case that no client can fail proves nothing. In ``link`` (one connection) and ``client`` (the
calls) each rule is a method of its own, and a misbehaviour overrides one method to break just that
rule. ``kspec misbehaviours`` lists them. ``--client reference`` selects the correct client,
``--client wrong:NAME`` a misbehaving one. ``python -m kspec.wrong [NAME]`` runs either as an
adapter.
"""
