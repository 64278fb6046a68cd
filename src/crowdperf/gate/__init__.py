"""The submission checker: at least as strict as both official ones, and stricter. It only reads.

Standard library only, beside the rooms kit, rules, logs and compliance. `gate.check` is the way in for programs,
`python -m crowdperf.gate DIR --version=v6.1` for people.
"""
