"""The engine of crowdperf: runs recipes of the CM format.

Layers (a module imports only lower layers and same-layer modules listed before it; a test checks this):

0. errors, tags, version, conditions, env, symbols
1. model, keys, schema, index, select, overrides, variations, configure, deps, cachekey, events, written
2. files, repos, entryfile, store, host, process, shell, compat, hooks, frame, choose, phases, execute
3. report, run, cache_actions, cm_home

Layers 0 and 1 are pure. Only layer 2 touches files, processes, the clock, the current folder and ``os.environ``.
Nothing here imports cmind.
Read ``run.py`` first.
"""
