"""What looks for defects in this repository by itself. Not in the wheel.

``targets/`` are coverage-guided: a file each, whose docstring states what must hold of any bytes,
and whose ``check(data)`` raises where it does not. The same function runs under a guide that
mutates inputs by what they reach (``worker``), over the committed corpus (``corpus/``), and in
plain pytest (``tests/fuzz``). ``stateful/`` walks the cluster model at random, ``fire/`` puts a
live server under malformed traffic, ``planted/`` shows that fuzzers find what is there.
docs/fuzzing.md says how to run each, and what was found.
"""
