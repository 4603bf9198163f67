"""How the beginning of a log goes: retention, compaction, and DeleteRecords."""
