"""The engine of crowdperf: runs recipes of the CM format.

Its packages, in order. Each imports only itself and those above it, and a module only the modules that stand before it
in the docstring of its package; a test checks both:

- pure: rules, documents
- with effects: disk, running, actions, planning, explaining, provenance, auditing

Only the latter touch files, processes, the clock, the current folder and ``os.environ``. Nothing here imports cmind.
Read ``running/step.py`` first.
"""

import gc
import sys

YOUNG_OBJECTS = 20_000
"""How many new objects make Python look for cycles that nothing uses. Its own 700 come 28 times in a call with 50
cached dependencies, which took a tenth of the processor time of such a call (2026-11-23)."""

if "cmind.cli" in sys.modules:  # the ``cm`` command: all that it has loaded stays until it ends
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
