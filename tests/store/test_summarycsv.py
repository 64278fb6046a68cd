"""Every row of a published table becomes a result; no cell is lost, and what no column could be made of is said."""

from collections.abc import Callable

import pytest
from made_summary import PLAIN, QUIRKS, csv_of, rows

from crowdperf.store import published_rows
from crowdperf.store.model import NewResult
from crowdperf.store.summary_csv import COLUMNS, CORES_NOTE, WrongTable, read_summary_csv

TABLE = read_summary_csv(csv_of(rows()))


def quirk(**cells: str) -> NewResult:
    """The result of the row whose quirk has these cells."""
    place = next(number for number, row in enumerate(QUIRKS) if cells.items() <= row.items())
    return TABLE.results[40 + place]


def test_sixty_rows_are_sixty_results_with_every_cell_as_it_was() -> None:
    assert [dict(result.raw) for result in TABLE.results] == rows()
    assert len({result.run_id for result in TABLE.results}) == 60
    assert TABLE.left_out == ()
    assert TABLE.notes == (CORES_NOTE,)
    assert all(not result.notes for result in TABLE.results[:40])


def test_a_plain_row_becomes_columns() -> None:
    result, place = TABLE.results[0], TABLE.results[0].configuration
    assert (place.suite, place.benchmark, place.tier, place.round) == ("inference", "llama2-70b", "99.9", "v6.1")
    assert (place.scenario, place.precision, place.stack, place.device) == ("Offline", "fp4", "hurricane", "cuda")
    assert (place.division, place.category, place.model_digest) == ("closed", "datacenter", "mlperf:llama2-70b")
    assert (place.system.accelerator, place.system.accelerator_count) == ("NVIDIA Zephyr Z9-200GB", 8)
    assert (place.system.nodes, place.system.sockets, place.system.cores) == (1, 2, 64)
    assert place.system.facts["availability"] == "available"
    assert (result.metric, result.value, result.unit) == ("tokens per second", 106517.0, "tokens/s")
    assert (result.submitter, result.valid, result.verification) == ("Northwind", True, "published")
    assert [score.name for score in result.accuracy] == ["ROUGE1", "ROUGE2", "ROUGEL", "TOKENS_PER_SAMPLE"]


CASES: tuple[tuple[dict[str, str], Callable[[NewResult], object], object, str], ...] = (
    ({"Scenario": "multistream"}, lambda r: r.configuration.scenario, "MultiStream", ""),
    ({"Scenario": "multistream"}, lambda r: r.configuration.benchmark, "resnet50", ""),
    ({"Scenario": "multistream"}, lambda r: (r.value, r.unit, r.higher_is_better), (5.030642, "ms", False), ""),
    ({"Units": "Latency (s)"}, lambda r: (round(r.value, 6), r.unit), (20603.024726, "ms"), ""),
    ({"Units": "Latency (s)"}, lambda r: r.configuration.scenario, "SingleStream", ""),
    ({"MlperfModel": "text_to_video"}, lambda r: r.configuration.benchmark, "wan-2.2-t2v-a14b", ""),
    ({"MlperfModel": "VLM"}, lambda r: round(r.accuracy[0].value, 4), 78.7942, "read as fp8+nvfp4"),
    ({"SystemType": "edge"}, lambda r: r.configuration.precision, "fp8+nvfp4", "GDN included"),
    ({"host_processor_core_count": "64 cores per socket, 128 total cores, 256 threads"},
     lambda r: r.configuration.system.cores, 128, "read as 128"),
    ({"host_processors_per_node": "8"}, lambda r: r.configuration.system.sockets, 2, "8 read as 2"),
    ({"total_accelerators": "288"}, lambda r: r.configuration.system.accelerator_count, 288, ""),
    ({"Availability": "rdi"}, lambda r: (r.submitter, r.configuration.system.facts["availability"]),
     ("Lone Pine Works LLC", "rdi"), ""),
    ({"SystemName": "Northwind Ridge 8 8x Zephyr Z9-200GB)"}, lambda r: r.configuration.division, "closed",
     "a bracket too few or too many"),
    ({"notes": 'Measured on host nw-r07-g03: 8x Zephyr, "quoted", and a comma'},
     lambda r: r.configuration.system.facts["remarks"],
     'Measured on host nw-r07-g03: 8x Zephyr, "quoted", and a comma', ""),
    ({"notes": "Closed division; speculative decoding"}, lambda r: r.configuration.model_digest,
     "open:Northwind/ridge8_z9x8/llama2-70b-99.9", "name the closed division"),
    ({"Model": "kite-k2"}, lambda r: r.configuration.benchmark, "qwen3.6-27b", "'kite-k2' is listed under"),
    ({"has_power": "True"}, lambda r: r.configuration.system.facts["design_power_watts"], 10200.0, ""),
    ({"Units": "Joules/stream"}, lambda r: (r.unit, r.higher_is_better), ("Joules/stream", False), "is not known"),
    ({"accelerator_model_name": ""}, lambda r: (r.configuration.device, r.configuration.system.accelerator_count),
     ("cpu", 0), ""),
    ({"total_accelerators": "9"}, lambda r: r.configuration.system.accelerator_count, 9, "9 is not 4 of each of 2"),
    ({"Accuracy": ""}, lambda r: r.accuracy, (), "is not a score"),
    ({"Accuracy": "acc: high  F1: 90.1"}, lambda r: [s.name for s in r.accuracy], ["F1"], "acc: high"),
    ({"errors": "3"}, lambda r: r.configuration.precision, "bf16+fp16+fp8", "errors '3'"),
    ({"weight_data_types": "ternary"}, lambda r: r.configuration.precision, "ternary", "contains no known type"),
    ({"Scenario": "Burst"}, lambda r: r.configuration.scenario, "Burst", "'Burst' is not known"),
    ({"inferred": "maybe"}, lambda r: r.configuration.system.nodes, 0, "not true or false"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "column", "expected", "note"), CASES, ids=lambda value: "" if callable(value) else str(value)[:40]
)
def test_each_quirk_becomes_a_column_and_what_is_lost_a_note(
    cells: dict[str, str], column: Callable[[NewResult], object], expected: object, note: str
) -> None:
    result = quirk(**cells)
    assert column(result) == expected
    assert note in "; ".join(result.notes)
    assert bool(note) == bool(result.notes)


def test_every_quirk_has_a_case() -> None:
    for row in QUIRKS:
        assert any(cells.items() <= row.items() for cells, *_ in CASES), row


def test_an_unknown_column_is_kept_and_said() -> None:
    table = read_summary_csv(csv_of([{**PLAIN, "Weather": "rain"}], (*COLUMNS, "Weather")))
    assert table.results[0].raw["Weather"] == "rain"
    assert table.notes[0] == "column 'Weather' is not known: kept as is"


def test_a_byte_order_mark_and_another_order_of_columns_are_read() -> None:
    table = read_summary_csv("\ufeff" + csv_of([PLAIN], tuple(reversed(COLUMNS))))
    assert table.results[0].value == 106517.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column Organization, Availability"),
        (csv_of([], COLUMNS[:-1]), "no column PrivateID"),
        (csv_of([PLAIN], (*COLUMNS, "Model")), "two columns 'Model'"),
        (csv_of([PLAIN]) + '"open', "line"),
    ],
)
def test_what_is_no_such_table_is_refused(text: str, words: str) -> None:
    with pytest.raises(WrongTable, match=words):
        read_summary_csv(text)


def test_rows_without_a_figure_are_named_with_their_line() -> None:
    text = csv_of([PLAIN, {**PLAIN, "Result": "n/a"}, {**PLAIN, "Result": "nan"}]) + '"short"\n'
    table = read_summary_csv(text)
    assert len(table.results) == 1
    assert table.left_out == (
        "line 3: Result 'n/a' is not a number",
        "line 4: Result 'nan' is not a number",
        "line 5: 1 cells, the header has 31",
    )


def test_the_same_run_given_twice_is_two_results() -> None:
    table = read_summary_csv(csv_of([PLAIN, PLAIN]))
    assert len({result.run_id for result in table.results}) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TensorRT 10.14, CUDA 13.1", "tensorrt"),
        ("PyTorch 2.10.0+rocm7.2.3, Triton 3.6.0", "pytorch"),
        ("TensorRT-LLM feat/1.2-mlpinf", "tensorrt-llm"),
        ("Atlas (spark), CUDA NVFP4", "atlas"),
        ("vLLM 0.22.1.dev0", "vllm"),
        ("ONNX Runtime v1.28.0", "onnx runtime"),
        ("Krai/Gentic", "krai/gentic"),
        ("", ""),
    ],
)
def test_a_stack_is_the_first_program_without_its_version(text: str, expected: str) -> None:
    assert published_rows.stack_of(text) == expected
