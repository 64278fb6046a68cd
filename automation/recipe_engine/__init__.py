"""The engine of crowdperf: runs recipes of the CM format.

Layers (a module imports only lower layers and same-layer modules listed before it; a test checks this):

0. errors, tags, version, env, symbols, conditions
1. cachemodel, model, keys, schema, index, select, overrides, variations, configure, deps, cachekey, demands, events,
   written, plan, plan_text, needs, findings, places, audit_subject
2. files, database, scan, recipe_index, metafile, repos, entryfile, entry_index, store, host, process, shell, compat,
   hooks, frame, choose, phases, execute, planned_store, planned_tree, planned
3. report, run, plan_action, cache_actions, beside, cm_home

Layers 0 and 1 are pure. Only layer 2 touches files, processes, the clock, the current folder and ``os.environ``.
Nothing here imports cmind.
Read ``run.py`` first.
"""
