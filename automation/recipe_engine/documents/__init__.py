"""Pure documents about recipes and what they do: what a step needs, help; and what their texts share.

In order, each module imports only earlier ones and earlier packages:

console_text, needs, recipe_help.
"""
