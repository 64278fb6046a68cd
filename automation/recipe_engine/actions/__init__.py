"""The actions of `cm ... script|cache|utils`, which the adapters call; errors become CM's codes here.

In order, each module imports only earlier ones and earlier packages:

adapter, listing, journals, runs, run_extras, run, help, flags, find, plan_action, cache_actions, cache_listing, resume,
cache_check, explain_action, explain_cache, audit, scaffold, utils_actions, script_actions.
"""
