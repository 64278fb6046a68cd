"""Pure rules: what queries, versions, variations, conditions, overrides and metadata mean, and what follows from them.

In order, each module imports only earlier ones and earlier packages:

frozen, secrets, errors, env, query, conditions, amounts, advice, model, retention, keys, schema, rerun, spelling,
input_types, inputs, deps, cachekey, configure.
"""
