"""The submission checker: at least as strict as both official ones, and stricter. It only reads.

Standard library only, plus the rooms kit, rules, logs and compliance. Programs use `gate.check`, and people `python -m
crowdperf.gate DIR --version=v6.1`.
"""
