"""The same steps on paper: an engine, contexts, effects and a cache that touch nothing, and the plan that comes out.

In order, each module imports only earlier ones and earlier packages:

plan, plan_text, planned_store, planned_step, planned, plan_action.
"""
