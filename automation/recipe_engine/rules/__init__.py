"""Pure rules: what queries, versions, variations, conditions, overrides and metadata mean, and what follows from them.

In order, each module imports only earlier ones and earlier packages:

secrets, errors, tags, version, env, quoting, symbols, conditions, amounts, advice, cachemodel, model, retention, keys,
schema, index, select, overrides, variations, configure, deps, cachekey, flags, demands, events, git_access, rerun.
"""
