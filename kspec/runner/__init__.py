"""What makes the suite run: files, processes, sockets, mock clusters. Everything that decides
anything about a client, what a case says and what its verdict is, stands outside and is pure.
"""
