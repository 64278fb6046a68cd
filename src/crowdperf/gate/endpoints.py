"""A result in the layout of MLPerf Endpoints inside an Inference submission: no LoadGen, three files of its client.

    results/SYSTEM/MODEL/Offline/   config.yaml   README.md   measurements.json
        performance/result_summary.json   accuracy/accuracy_results.json   audit/audit_NAME.json

Recognized as by the newer checker: both detail logs of LoadGen are absent. That checker then fails with an exception if
the other files are also absent. Here such a folder is a result whose logs are missing. Sources: loader.py,
parsers/endpoints_parser.py and constants.py of mlcommons/inference b66003e1, tools/submission/submission_checker. The
client's output: src/inference_endpoint/metrics/report.py of mlcommons/endpoints ea332753 (August 2026).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crowdperf.gate.documents import JsonFile, YamlFile, read_json, read_yaml
from crowdperf.gate.listing import join
from crowdperf.gate.views import ScenarioView, Subject
from crowdperf.kit.records import number_of
from crowdperf.kit.text_documents import Json, part
from crowdperf.logs.round_tables import ModelTable

SUMMARY, SCORES = "performance/result_summary.json", "accuracy/accuracy_results.json"
CONFIGS = ("config.yaml", "config.yml")
AUDITS = {
    "TEST01": "accuracy_in_performance_test",
    "TEST04": "output_caching_test",
    "TEST06": "consistency_output_test",
    "TEST07": "accuracy_in_performance_full_test",
    "TEST08": "accuracy_in_performance_dlrmv3_test",
}
"""The client's names of compliance tests: audit/audit_NAME.json (ENDPOINTS_COMPLIANCE_MAPPING)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointsView:
    """One scenario of a model in this layout. audits: by compliance test, those of the model's tests."""

    scenario: ScenarioView
    config: YamlFile
    summary: JsonFile
    scores: JsonFile
    audits: Mapping[str, JsonFile]

    @property
    def subject(self) -> Subject:
        """Whose result it is."""
        return self.scenario.subject

    @property
    def table(self) -> ModelTable | None:
        """The model's values in the round."""
        return self.scenario.model.table

    def setting(self, *keys: str) -> Json:
        """A value of config.yaml by its path, or None if it is missing."""
        found: Json = part(self.config.fields, *keys)
        return found

    def figure(self, *keys: str) -> float | None:
        """A number of result_summary.json by its path."""
        return number_of(part(self.summary.fields, *keys))

    def percentile(self, metric: str, percent: str) -> float | None:
        """A percentile of `latency`, `ttft` or `tpot`: the early-stopping estimate, which the checker looks at."""
        values = part(self.summary.fields, metric, "early_stopping_percentiles")
        if not isinstance(values, dict):
            return None
        return number_of(values.get(percent, values.get(percent.removesuffix(".0"))))

    @property
    def entries(self) -> tuple[Mapping[str, Json], ...]:
        """The scores, one entry for each data set."""
        found = self.scores.fields.get("accuracy_scores")
        return tuple(one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def numbers_in(value: Json) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a score: the score itself under "", or each of an object's by its name."""
    for name, one in value.items() if isinstance(value, dict) else [("", value)]:
        try:
            number = number_of(float(one)) if isinstance(one, str) else number_of(one)
        except ValueError:
            continue
        if number is not None:
            yield name, number


def endpoints_of(scenario: ScenarioView) -> EndpointsView | None:
    """Return the view of a result in this layout, None for one of LoadGen, and in rounds before v6.1."""
    listing, folder = scenario.tree.listing, scenario.folder
    names = (*CONFIGS, SUMMARY, SCORES)
    logs = [join(folder, f"{place}/mlperf_log_detail.txt") for place in ("performance/run_1", "accuracy")]
    if not scenario.tree.round.since("v6.1") or any(path in listing.sizes for path in logs):
        return None
    if not any(join(folder, name) in listing.sizes for name in names):
        return None
    config = next((name for name in CONFIGS if join(folder, name) in listing.sizes), CONFIGS[0])
    tests = scenario.model.table.tests if scenario.model.table else ()
    return EndpointsView(
        scenario=scenario,
        config=read_yaml(listing, join(folder, config)),
        summary=read_json(listing, join(folder, SUMMARY)),
        scores=read_json(listing, join(folder, SCORES)),
        audits={
            test: read_json(listing, join(folder, f"audit/audit_{AUDITS[test]}.json"))
            for test in tests
            if test in AUDITS
        },
    )
