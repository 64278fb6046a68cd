"""A summary.csv of 60 rows with everything that rows of round v6.1 do to those who read them; all names are invented.

The last 20 rows are one quirk each; the first 40 are a plain closed system in every unit.
"""

from crowdperf.store.summary_csv import COLUMNS

PLAIN = {
    "Organization": "Northwind",
    "Availability": "available",
    "Division": "closed",
    "SystemType": "datacenter",
    "SystemName": "Northwind Ridge 8 (8x Zephyr Z9-200GB)",
    "Platform": "ridge8_z9x8",
    "Model": "llama2-70b-99.9",
    "MlperfModel": "llama2-70b-99.9",
    "Scenario": "Offline",
    "Result": "106517.0",
    "Accuracy": "ROUGE1: 44.5481  ROUGE2: 22.1846  ROUGEL: 28.9482  TOKENS_PER_SAMPLE: 283.2",
    "number_of_nodes": "1",
    "host_processor_model_name": "Boreal B7(R) 6000",
    "host_processors_per_node": "2",
    "host_processor_core_count": "64",
    "accelerator_model_name": "NVIDIA Zephyr Z9-200GB",
    "accelerators_per_node": "8",
    "total_accelerators": "8",
    "Location": "./closed/Northwind/results/ridge8_z9x8/llama2-70b-99.9/Offline/performance/run_1",
    "framework": "Hurricane 10.14, ToolKit 13.1",
    "operating_system": "Linux 24.04",
    "notes": "",
    "compliance": "closed",
    "errors": "0",
    "version": "v6.1",
    "inferred": "0",
    "has_power": "False",
    "Units": "Tokens/s",
    "weight_data_types": "fp4",
    "design_power_watts": "None",
    "PrivateID": "",
}
SCENES = (("Offline", "Tokens/s", "106517.0"), ("Server", "Tokens/s", "103275.5"), ("Offline", "Samples/s", "88.25"),
          ("Server", "Queries/s", "9297.78"))  # fmt: skip
QUIRKS: tuple[dict[str, str], ...] = (
    {"Scenario": "multistream", "Units": "Latency (ms)", "Result": "5.030642", "Accuracy": "acc: 77.805",
     "Model": "resnet50", "MlperfModel": "resnet", "Division": "open", "compliance": "open", "inferred": "1"},
    {"Scenario": "SINGLE_STREAM", "Units": "Latency (s)", "Result": "20.603024726", "Model": "wan-2.2-t2v-a14b",
     "MlperfModel": "text_to_video", "Accuracy": "vbench_score: 70.1582"},
    {"Model": "qwen3-vl-235b-a22b", "MlperfModel": "VLM", "Accuracy": "0.7879417016152472",
     "Scenario": "Interactive", "Units": "Queries/s", "inferred": "1",
     "weight_data_types": "NVFP4 weights with FP8 KV cache"},
    {"Model": "qwen3.6-27b", "MlperfModel": "agentic edge", "SystemType": "edge", "Accuracy": "0.8723618090452261",
     "Scenario": "SingleStream", "Units": "Latency (ms)", "Result": "3807.66351136147",
     "weight_data_types": "nvfp4 (E2M1 4-bit + FP8 block scales), GDN included"},
    {"host_processor_core_count": "64 cores per socket, 128 total cores, 256 threads"},
    {"host_processors_per_node": "8", "Platform": "8xZ9_2xCHIP_6000", "host_processor_model_name": "Boreal CHIP 6000"},
    {"host_processor_model_name": "Grace-like CPU", "host_processor_core_count": "144", "number_of_nodes": "72",
     "accelerators_per_node": "4", "total_accelerators": "288"},
    {"Availability": "rdi", "Organization": "Lone Pine Works LLC", "Division": "open", "compliance": "open",
     "Location": "./open/Lone Pine Works LLC/results/z9_6x/llama2-70b-99.9/Offline/performance/run_1"},
    {"SystemName": "Northwind Ridge 8 8x Zephyr Z9-200GB)"},
    {"notes": "Measured on host nw-r07-g03: 8x Zephyr, \"quoted\", and a comma"},
    {"Division": "open", "compliance": "open", "notes": "Closed division; speculative decoding"},
    {"Division": "open", "compliance": "open", "Model": "kite-k2", "MlperfModel": "agentic edge"},
    {"has_power": "True", "design_power_watts": "10200"},
    {"Units": "Joules/stream", "Result": "0.5"},
    {"accelerator_model_name": "", "accelerators_per_node": "0", "total_accelerators": "0"},
    {"accelerators_per_node": "4", "total_accelerators": "9", "number_of_nodes": "2"},
    {"Accuracy": ""},
    {"Accuracy": "acc: high  F1: 90.1"},
    {"weight_data_types": "fp16,bf16,fp8", "errors": "3", "notes": "two\nlines"},
    {"weight_data_types": "ternary", "inferred": "maybe", "number_of_nodes": "one", "Scenario": "Burst"},
)  # fmt: skip


def rows() -> list[dict[str, str]]:
    """The 60 rows, each at a location of its own."""
    made = []
    for number in range(40):
        scenario, unit, figure = SCENES[number % len(SCENES)]
        made.append({**PLAIN, "Scenario": scenario, "Units": unit, "Result": figure, "Platform": f"ridge{number}"})
    made += [{**PLAIN, **quirk} for quirk in QUIRKS]
    for number, row in enumerate(made):
        if row["Location"] == PLAIN["Location"]:
            row["Location"] = f"./closed/Northwind/results/system{number}/{row['Model']}/Offline/performance/run_1"
    return made


def csv_of(table: list[dict[str, str]], columns: tuple[str, ...] = COLUMNS) -> str:
    """The text as the official script writes it: a bare header, all cells quoted."""
    lines = [",".join(columns)]
    lines += [",".join('"' + row.get(column, "").replace('"', '""') + '"' for column in columns) for row in table]
    return "\n".join(lines) + "\n"
