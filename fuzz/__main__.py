"""``python -m fuzz``: see ``fuzz.run``."""

from fuzz.run import main

main()
