"""The files of MLPerf results: LoadGen's logs, layout of results and submissions, tables of rounds. It only reads.

`run_log` reads what LoadGen wrote; `layout` knows every path of a results folder, `tree` those of a submission. The
harness and the recipes share this room, so that a result means the same thing everywhere.
"""
