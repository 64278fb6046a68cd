"""Pure documents about runs: plan, explanation, help; and their texts.

In order, each module imports only earlier ones and earlier packages:

plan, plan_text, needs, origins, explain, explain_text, recipe_help.
"""
