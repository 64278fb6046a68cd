"""detect-cpu: the rules from recorded and published outputs, and the hook on this machine."""

import json
import os
import platform
from pathlib import Path

import pytest
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine.cpu import cpuinfo_blocks

cpu_facts = load_module("detect-cpu", "cpu_facts")
limits = load_module("detect-cpu", "limits")
sources = load_module("detect-cpu", "sources")

CPU = Path(__file__).parent / "fixtures" / "cpu"


def facts_of(lscpu: str = "", cpuinfo: str = "", core_lists: tuple[str, ...] = (), machine: str = "x86_64"):  # type: ignore[no-untyped-def]
    return cpu_facts.facts_from_linux(
        cpu_facts.LinuxSources(
            lscpu=cpu_facts.parse_lscpu((CPU / lscpu).read_text(encoding="utf-8") if lscpu else ""),
            cpuinfo=cpuinfo_blocks((CPU / cpuinfo).read_text(encoding="utf-8") if cpuinfo else ""),
            core_lists=core_lists,
            numa_nodes=0,
            cache_bytes={"L2": 4194304},
            machine=machine,
        )
    )


@pytest.mark.parametrize(
    ("lscpu", "model", "sockets", "logical", "cores", "threads", "numa"),
    [
        ("intel-vm-lscpu.json", "Intel(R) Xeon(R) Processor", 1, 2, 2, 1, 1),
        ("intel-two-sockets-lscpu.json", "", 2, 128, 64, 2, 2),
        ("intel-nested-lscpu.json", "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", 1, 26, 13, 2, 1),
        ("amd-vm-lscpu.json", "AMD EPYC 7R32", 1, 1, 1, 1, 1),
        ("arm64-lscpu.json", "Neoverse-N1", 1, 80, 80, 1, 1),
    ],
)
def test_lscpu_gives_cores_without_hyperthreads(
    lscpu: str, model: str, sockets: int, logical: int, cores: int, threads: int, numa: int
) -> None:
    facts = facts_of(lscpu)
    assert facts.model_name == model
    assert (facts.sockets, facts.logical_cpus, facts.physical_cores) == (sockets, logical, cores)
    assert (facts.threads_per_core, facts.numa_nodes) == (threads, numa)


def two_clusters(is_nested: bool) -> str:
    """lscpu -J of an Arm processor of two kinds of cores, in the form of util-linux 2.40 (made, not recorded)."""
    clusters = [
        [("Model name:", "Cortex-X925"), ("Model:", "1"), ("Thread(s) per core:", "1"), ("Core(s) per socket:", "10"),
         ("Socket(s):", "1"), ("Stepping:", "r0p1"), ("CPU max MHz:", "4004.0000"), ("CPU min MHz:", "1378.0000"),
         ("Flags:", "fp asimd sve sve2 bf16")],
        [("Model name:", "Cortex-A725"), ("Model:", "1"), ("Thread(s) per core:", "1"), ("Core(s) per socket:", "10"),
         ("Socket(s):", "1"), ("Stepping:", "r0p1"), ("CPU max MHz:", "2860.0000"), ("CPU min MHz:", "338.0000"),
         ("Flags:", "fp asimd sve sve2")],
    ]  # fmt: skip
    named = [[{"field": field, "data": data} for field, data in cluster] for cluster in clusters]
    first = [{"field": "Architecture:", "data": "aarch64"}, {"field": "CPU(s):", "data": "20"}]
    vendor = {"field": "Vendor ID:", "data": "ARM"}
    if is_nested:
        rows = [*first, {**vendor, "children": [{**one[0], "children": one[1:]} for one in named]}]
    else:
        rows = [*first, vendor, *named[0], *named[1]]
    return json.dumps({"lscpu": [*rows, {"field": "NUMA node(s):", "data": "1"}]})


@pytest.mark.parametrize("is_nested", [True, False])
def test_a_processor_of_two_kinds_of_cores_has_both_names_and_what_they_have_in_common(is_nested: bool) -> None:
    fields = cpu_facts.parse_lscpu(two_clusters(is_nested))
    facts = cpu_facts.facts_from_linux(
        cpu_facts.LinuxSources(lscpu=fields, cpuinfo=(), core_lists=(), numa_nodes=0, cache_bytes={}, machine="aarch64")
    )
    assert facts.model_name == "10 x Cortex-X925, 10 x Cortex-A725"
    assert (facts.max_mhz, fields["CPU min MHz"]) == ("4004.0000", "338.0000")
    assert facts.flags == ("fp", "asimd", "sve", "sve2")
    assert (facts.sockets, facts.logical_cpus, facts.physical_cores) == (1, 20, 20)
    assert (fields["Stepping"], fields["NUMA node(s)"]) == ("r0p1", "1")


@pytest.mark.parametrize(
    ("lscpu", "present", "absent"),
    [
        ("intel-vm-lscpu.json", {"AVX2", "AVX512F", "AVX512_VNNI"}, {"AMX_TILE", "AVX512_BF16", "NEON", "SVE"}),
        ("intel-two-sockets-lscpu.json", {"AVX512_BF16", "AMX_TILE", "AMX_INT8", "AMX_BF16"}, {"NEON"}),
        ("amd-vm-lscpu.json", {"AVX2"}, {"AVX512F", "AMX_TILE"}),
        ("arm64-lscpu.json", {"NEON"}, {"SVE", "AVX2"}),
    ],
)
def test_each_instruction_set_is_yes_or_no(lscpu: str, present: set[str], absent: set[str]) -> None:
    env = cpu_facts.env_of_facts(facts_of(lscpu))
    assert {env[f"CM_HOST_CPU_HAS_{name}"] for name in present} == {"yes"}
    assert {env[f"CM_HOST_CPU_HAS_{name}"] for name in absent} == {"no"}
    assert "AVX512" not in env["CM_HOST_CPU_FLAGS"]
    assert len(env["CM_HOST_CPU_FLAGS"].split()) > 10


def test_the_kernels_core_lists_win_over_the_product_of_lscpu() -> None:
    """A machine with one core switched off has fewer cores than sockets times cores per socket."""
    lists = tuple(f"{n},{n + 64}" for n in range(63)) * 2
    assert facts_of("intel-two-sockets-lscpu.json", core_lists=lists).physical_cores == 63


def test_without_lscpu_cpuinfo_gives_the_facts() -> None:
    facts = facts_of(cpuinfo="intel-vm-cpuinfo.txt")
    assert facts.model_name == "Intel(R) Xeon(R) Processor"
    assert (facts.sockets, facts.logical_cpus, facts.physical_cores) == (1, 2, 2)
    assert facts.architecture == "x86_64"
    assert "avx512_vnni" in facts.flags


def test_without_lscpu_an_arm_processor_is_named_by_its_numbers() -> None:
    facts = facts_of(cpuinfo="arm64-cpuinfo.txt", machine="aarch64")
    assert facts.model_name == "implementer 0x41 part 0xd0c"
    assert (facts.logical_cpus, facts.physical_cores) == (4, 4)
    assert cpu_facts.env_of_facts(facts)["CM_HOST_CPU_HAS_SVE"] == "yes"


def test_lines_that_cpuinfo_lacks_are_not_found_as_cm_users_know_it() -> None:
    env = cpu_facts.env_of_facts(facts_of("arm64-lscpu.json"))
    assert env["CM_HOST_CPU_TLB_SIZE"] == "Not Found"
    assert env["CM_HOST_CPU_L2_CACHE_SIZE"] == "80 MiB"


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"lscpu": null}'])
def test_a_broken_lscpu_output_is_as_good_as_none(text: str) -> None:
    assert cpu_facts.parse_lscpu(text) == {}


def test_the_values_of_a_mac_are_read_from_sysctl() -> None:
    values = {
        "hw.physicalcpu": "8",
        "hw.logicalcpu": "8",
        "hw.packages": "1",
        "hw.l2cachesize": "4194304",
        "hw.optional.AdvSIMD": "1",
        "hw.optional.arm.FEAT_SME": "0",
        "machdep.cpu.brand_string": "Apple M1",
    }
    facts = cpu_facts.facts_from_sysctl(values)
    env = cpu_facts.env_of_facts(facts)
    assert (facts.model_name, facts.physical_cores, facts.cache_bytes["L2"]) == ("Apple M1", 8, 4194304)
    assert env["CM_HOST_CPU_HAS_NEON"] == "yes"
    assert "feat_sme" not in facts.flags


@pytest.mark.parametrize(
    ("size", "step", "text"),
    [
        (25276514304, 1000, "25G"),
        (7800000000, 1000, "7.8G"),
        (512, 1000, "512"),
        (300 * 1024**3, 1024, "300G"),
        (1024**4, 1024, "1.0T"),
        (7 * 1000**6, 1000, "7000P"),
    ],
)
def test_sizes_are_written_as_free_and_df_write_them(size: int, step: int, text: str) -> None:
    assert limits.human_size(size, step) == text


def test_only_local_disks_count_as_disks() -> None:
    mounts = (
        "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\nhost:/share /mnt nfs rw 0 0\n"
        "/dev/loop1 /snap/core squashfs ro 0 0\npool/data /my\\040data zfs rw 0 0\n"
    )
    assert limits.parse_disk_mounts(mounts) == ("/", "/my data")


def test_caches_shared_by_several_cpus_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu in (0, 1):
        for index, (level, kind, size, shared) in enumerate(
            [("1", "Data", "48K", str(cpu)), ("1", "Instruction", "32K", str(cpu)), ("3", "Unified", "8192K", "0-1")]
        ):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            for name, value in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
                (folder / name).write_text(value + "\n")
    monkeypatch.setattr(sources, "SYS_CPU", tmp_path)
    assert sources.cache_size_bytes() == {"L1D": 2 * 48 * 1024, "L1I": 2 * 32 * 1024, "L3": 8192 * 1024}


@pytest.mark.skipif(platform.system() != "Linux", reason="reads /proc and /sys")
def test_the_hook_gives_the_facts_of_this_machine(hook_input) -> None:  # type: ignore[no-untyped-def]
    call = hook_input({"CM_HOST_OS_TYPE": "linux"})
    assert load_recipe("detect-cpu").preprocess(call) == {"return": 0}
    env = exported("detect-cpu", call["env"])
    state = call["state"]["host_cpu"]
    assert int(env["CM_HOST_CPU_TOTAL_LOGICAL_CORES"]) >= len(os.sched_getaffinity(0))
    assert 1 <= state["physical_cores"] <= state["logical_cpus"]
    page = os.sysconf("SC_PAGE_SIZE")
    assert state["memory_bytes"] == os.sysconf("SC_PHYS_PAGES") * page
    assert state["disk_bytes"] > 0
    assert all(isinstance(value, str) for value in env.values())
    json.dumps(state)


def test_a_plan_of_several_steps_asks_the_machine_once(hook_input, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    recipe = load_recipe("detect-cpu")
    recipe._linux_facts.cache_clear()
    for _ in range(2):
        assert recipe.preprocess(hook_input({"CM_HOST_OS_TYPE": "linux"})) == {"return": 0}
        monkeypatch.setattr(sources, "lscpu_json", lambda: pytest.fail("lscpu is called a second time"))


def test_a_machine_that_tells_nothing_is_an_error_with_a_hint(hook_input, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(sources, "lscpu_json", lambda: "")
    monkeypatch.setattr(sources, "read_text", lambda path: "")
    recipe = load_recipe("detect-cpu")
    monkeypatch.setattr(recipe, "_linux_facts", recipe._linux_facts.__wrapped__)
    answer = recipe.preprocess(hook_input({"CM_HOST_OS_TYPE": "linux"}))
    assert answer["return"] == 1
    assert "hint:" in answer["error"]
