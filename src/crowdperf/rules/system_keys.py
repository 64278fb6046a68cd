"""The keys of a submission's system description (systems/*.json), and which of them may be empty.

Source: the lists of system description fields of the official submission checker of mlcommons/inference at b66003e1
(tools/submission/submission_checker/constants.py, August 2026).
"""

KEYS = (
    "division",
    "submitter",
    "status",
    "system_name",
    "system_type",
    "system_type_detail",
    "number_of_nodes",
    "host_processor_model_name",
    "host_processors_per_node",
    "host_processor_core_count",
    "host_processor_frequency",
    "host_processor_caches",
    "host_processor_interconnect",
    "host_memory_capacity",
    "host_memory_configuration",
    "host_storage_capacity",
    "host_storage_type",
    "host_networking",
    "host_networking_topology",
    "host_network_card_count",
    "accelerators_per_node",
    "accelerator_model_name",
    "accelerator_memory_capacity",
    "accelerator_frequency",
    "accelerator_host_interconnect",
    "accelerator_interconnect",
    "accelerator_interconnect_topology",
    "accelerator_memory_configuration",
    "accelerator_on-chip_memories",
    "cooling",
    "hw_notes",
    "sw_notes",
    "framework",
    "operating_system",
    "other_software_stack",
)
MAY_BE_EMPTY = frozenset(
    {
        "system_type_detail",
        "host_processor_frequency",
        "host_processor_caches",
        "host_processor_interconnect",
        "accelerator_frequency",
        "accelerator_interconnect_topology",
        "accelerator_on-chip_memories",
        "hw_notes",
        "sw_notes",
    }
)
"""Every other key needs a value."""

MEANINGFUL = tuple(key for key in KEYS if key not in MAY_BE_EMPTY)
"""The keys that need a value."""
