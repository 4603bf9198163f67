"""Deliberate defects of the reference client: a case that no client can fail proves nothing.

A defect is a class that overrides one rule of ``kspec.reference_client``, declared by
``@defect(NAME)``; the first paragraph of its docstring describes it. `kspec misbehaviours`, the
clients ``wrong:NAME`` and docs/reference/wrong-clients.md list what the modules of this package
declare. The cases name the defects that must fail them.
"""
