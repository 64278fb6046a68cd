"""How recipes look at a machine, real or recorded: through ``probe.Machine``, so that every finding is testable."""
