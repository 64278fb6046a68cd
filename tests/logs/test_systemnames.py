"""One machine has one name, whoever makes it: accelerators by number, processors by sockets."""

import pytest

from crowdperf.logs.system_names import hardware_name, machine_name


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ({"processor": "AMD EPYC", "core_count": 64, "socket_count": 1}, "AMD_EPYCx1"),
        ({"processor": "AMD EPYC", "core_count": 64, "usable_core_count": 8, "socket_count": 2}, "AMD_EPYCx2"),
        ({"processor": "Intel(R) Xeon(R) 8481C CPU @ 2.70GHz", "socket_count": None}, "Intel_Xeon_8481C_CPU_2.70GHzx1"),
        ({"processor": "10 x Cortex-X925, 10 x Cortex-A725"}, "10_x_Cortex-X925_10_x_Cortex-A725x1"),
        ({"processor": "x", "socket_count": 2, "gpus": [{"name": "NVIDIA H100 80GB HBM3"}] * 8}, "H100_80GB_HBM3x8"),
        ({"processor": "../up", "socket_count": 0}, "upx1"),
        ({}, ""),
        ({"gpus": None, "processor": None}, ""),
    ],
)
def test_a_machine_is_named_by_its_accelerators_or_its_sockets(machine, name):
    assert machine_name(machine) == name


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [("A(TM) B", 2, "A_Bx2"), ("日本", 3, ""), ("a", "3", "ax1"), ("a", 10**30, f"ax{10**30}")],
)
def test_a_name_has_letters_that_a_folder_may_have(text, count, name):
    assert hardware_name(text, count) == name
