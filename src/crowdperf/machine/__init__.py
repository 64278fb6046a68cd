"""The parts of a machine: CPU, GPUs, drivers, toolkits, packages. It looks at a real or a recorded one through
``probe.Machine`` alone, so that every finding is testable."""
