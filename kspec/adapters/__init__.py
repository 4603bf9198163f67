"""Programs that drive real clients, one each, by the lines of docs/adapters.md.

They are started as processes of their own and share nothing with the suite but those lines; the
ones in Python are packaged as modules so that any interpreter with the client can run them.
"""
