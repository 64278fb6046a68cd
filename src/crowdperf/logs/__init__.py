"""Names, log reading and folder layout of MLPerf Inference results: standard library only, no side effects but
reading.

`names` holds scenarios, modes and metrics; `logs` reads what LoadGen wrote; `layout` knows every path of a results
folder. The harness and the recipes share this package, so that a result means the same thing everywhere.
"""
