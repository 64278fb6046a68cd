"""Results of MLPerf runs, own, sent in and published, in one SQLite file: read, checked, kept, found, given out again.

Needs neither cmind nor the engine; only signing needs a package (cryptography).
"""
