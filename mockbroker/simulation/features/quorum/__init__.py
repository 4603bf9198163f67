"""The metadata quorum: its voters, and the requests that change them or unregister nodes."""
