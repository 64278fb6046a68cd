"""Metrics of Microsoft's VirtualClient: made of metadata.json, written as its telemetry files.

`metadata` reads metadata.json, `metrics` makes metrics of it, `upstream` those that VirtualClient makes, `telemetry`
turns metrics into rows and objects, `metricfiles` appends them to files.
"""
