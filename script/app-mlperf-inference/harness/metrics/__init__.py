"""Accuracy metrics, one file each: from the responses in LoadGen's accuracy log to a `Score` whose line the official
checkers parse. Each says which official script it agrees with."""
