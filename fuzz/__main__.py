"""``python -m fuzz``: the command line of ``fuzz.run``."""

from fuzz.run import main

main()
