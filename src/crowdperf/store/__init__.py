"""Results of MLPerf runs, own, sent in and published, in one SQLite file: read, checked, kept, found, given out again.
It has no pages and no server.

Only signing needs a package (cryptography).
"""
