"""What lies on the disk: files and locks, repositories and their index, the store of cache entries.

In order, each module imports only earlier ones and earlier packages:

files, entries, locks, metadata, digests, packages, repos, store.
"""
