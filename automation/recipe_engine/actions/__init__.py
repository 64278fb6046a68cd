"""The actions of `cm ... script|cache|utils`, which the adapters call; errors become CM's codes here.

In order, each module imports only earlier ones and earlier packages:

adapter, run_extras, run, journals, action_help, help, cache_actions, cache_report, scaffold, utils_actions,
script_actions.
"""
