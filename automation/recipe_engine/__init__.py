"""The engine of crowdperf: runs recipes of the CM format.

Layers (a module imports only lower layers and same-layer modules listed before it; a test checks this):

0. errors, tags, version, env, symbols, conditions, amounts, advice
1. cachemodel, model, retention, keys, schema, index, select, overrides, variations, configure, deps, cachekey, flags,
   rerun, demands, lockfile, resultrecord, comparison, comparison_text, events, written, plan, plan_text, needs,
   findings, places, audit_subject, audit_meta, audit_links, audit_code, audit_rules, git_access, recipe_help, masking,
   origins, explain, explain_text
2. files, flocks, database, scan, recipe_index, metafile, repos, entryfile, entry_index, removal, usage, store, host,
   memory, interrupts, process, failure, shell, compat, successor, hooks, frame, locked, choose, phases, execute,
   journal, recording, planned_store, planned_tree, planned, explained
3. report, run_extras, run, plan_action, lock_action, resume, record_action, results, input_check, reproduce,
   diff_action, cache_actions, cache_check, cache_gc, explain_action, explain_cache, beside, cm_home, audit, scaffold,
   cfg_files, utils_actions, script_actions

Layers 0 and 1 are pure. Only layer 2 touches files, processes, the clock, the current folder and ``os.environ``.
Nothing here imports cmind.
Read ``run.py`` first.
"""
