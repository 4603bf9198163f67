"""Fuzz your client: answers of the mock cluster mutated along their grammar, and what becomes of a
real client that is given them.

``mutators`` makes bad frames out of good ones, and knows no sockets. ``session`` gives them to a
client by its adapter, ``watch`` sees what happens to it, ``causes`` says what is the same,
``minimise`` and ``reproducer`` make of it what can be sent to a maintainer.
docs/fuzz-your-client.md is for those who use it.
"""
