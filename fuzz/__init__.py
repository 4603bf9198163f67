"""Fuzzers that look for defects in kproto itself. Not part of the wheel.

``targets/`` are coverage-guided, a module each. Its docstring states an invariant for any input,
and its ``check(data)`` raises if the invariant does not hold. The same function runs under a guide,
which mutates inputs by the coverage they reach (``worker``), over the committed corpus
(``corpus/``), and in pytest (``tests/fuzz``). ``stateful/`` runs random commands on the cluster
model, ``fire/`` sends malformed traffic to a live server, and ``planted/`` shows that fuzzers find
deliberate bugs. docs/explanation/fuzzing.md says how to run each and what was found. To fuzz
clients, see ``kspec.clientfuzz``.
"""
