"""Programs that drive real clients by the protocol of docs/reference/adapters.md, one per client.

They run as separate processes and share only that protocol with the suite. Those in Python are
packaged as modules, so that any interpreter that has the client can run them.
"""
