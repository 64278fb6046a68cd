"""``cm audit script``: what is wrong with a recipe, at which line, and how bad that is; all rules are pure.

In order, each module imports only earlier ones and earlier packages:

findings, recipes, metadata, code, audit.
"""
