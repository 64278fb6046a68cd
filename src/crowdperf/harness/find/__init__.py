"""find-performance: finds the figure that a later run is to be given, by trying. Nothing it writes is a result.

search.py     the rule of the search: what was tried in, the next rate out (pure)
plans.py      how long, how often and how exact, for each execution mode (pure)
lateness.py   counts the queries that are already late while a probe goes on (pure)
probe_run.py    one probe: a LoadGen run that is given up as soon as it cannot become VALID
record.py     find.json: everything that was tried, written after each probe
session.py    one call from the request to find.json
"""
