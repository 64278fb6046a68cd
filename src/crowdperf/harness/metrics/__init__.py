"""Accuracy metrics, one file each: from the responses in LoadGen's accuracy log to a `Score` whose line the official
checkers parse. Each says which official script it agrees with.

A score's values are rounded to the digits of the line, because those are what the official checkers hold against a
target: an AUC of 79.50687 is 79.507 there and passes 79.5069. tests/compat/compare_scorers.py runs the official scripts
beside these on the same logs; tests/harness/scores/recorded.json keeps what they printed."""
