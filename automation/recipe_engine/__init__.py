"""The engine of crowdperf: runs recipes of the CM format.

Its packages, in order. Each imports only itself and those above it, and a module only the modules that stand before it
in the docstring of its package; a test checks both:

- pure: rules, documents, auditing
- with effects: disk, running, planning, explaining, actions, provenance

Only the latter touch files, processes, the clock, the current folder and ``os.environ``. Nothing here imports cmind.
Read ``actions/run.py`` first.
"""
