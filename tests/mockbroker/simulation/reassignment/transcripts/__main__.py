"""Writes the outputs of all transcripts as they are now."""

from tests.mockbroker.simulation.reassignment.transcripts import FOLDER, recorded

for path in sorted(FOLDER.glob("*.txt")):
    before = path.read_text()
    after = recorded(before)
    if after != before:
        path.write_text(after)
        print(f"changed {path.name}")
