"""Run the suite: files, processes, sockets and mock clusters.

Everything that decides about a client (what a case means and what its verdict is) is outside this
package and pure.
"""
