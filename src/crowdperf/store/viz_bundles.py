"""Reads the bundle.json that MLCommons' viewer of Endpoints results writes (`mlperf-viz --export`): a curve for each
submission in it, with the figures that the viewer derived.

    {"bundle_version": 1, "submissions": [{"id", "source_path", "combined_submission": {...}}],
     "runs": [{"submission_id", "label", "run": {"direct_fields": {...}, "derived_fields": {...}}}]}

Format: bundle.py and adapt.py of mlperf-viz 2.0.0 (read 2026-11-23). source_path, a folder of its maker, is not kept.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdperf.kit.records import number_of
from crowdperf.kit.text_documents import json_object, mapping, utf8_text
from crowdperf.store.curve_results import CurveFacts, nodes_of, result_of_curve
from crowdperf.store.facts import stripped_text
from crowdperf.store.keys import digest_of
from crowdperf.store.model import CurvePoint, NewResult
from crowdperf.store.other_tools import NotOfTool
from crowdperf.store.result_folders import LeftOut

VERSION = 1


def _point(run: Mapping[str, Any]) -> tuple[CurvePoint, float] | None:
    """A point and its seconds; None where it lacks a figure of the chart."""
    direct, derived = mapping(run.get("direct_fields")), mapping(run.get("derived_fields"))
    figures = [number_of(derived.get(name)) for name in ("system_tps", "tps_per_user", "ttft")]
    concurrency, duration = number_of(direct.get("concurrency")), number_of(direct.get("measured_run_duration"))
    if None in figures or concurrency is None:
        return None
    tps, per_user, ttft = (figure for figure in figures if figure is not None)
    point = CurvePoint(
        concurrency=int(concurrency),
        region=stripped_text(direct.get("config_region")),
        system_tps=tps,
        tps_per_user=per_user,
        ttft_p90_ms=ttft,
        accuracy=None,
    )
    return point, duration or 0.0


def _system(combined: Mapping[str, Any]) -> dict[str, Any]:
    """What the parts of a combined submission say of the system, as system_desc.json has it."""
    details, metadata = mapping(combined.get("sut_details")), mapping(combined.get("sut_metadata"))
    backend = stripped_text(details.get("serving_framework"))
    rows = [{"inference_backend": backend, **node} for node in nodes_of(details)]
    return {**metadata, "system_size": details.get("system_size"), "node_types": rows}


def _curve(entry: Mapping[str, Any], runs: list[Mapping[str, Any]]) -> NewResult | str:
    combined = mapping(entry.get("combined_submission"))
    model, info = mapping(combined.get("model_metadata")), mapping(combined.get("submission_info"))
    name = stripped_text(model.get("model_name"))
    found = [_point(mapping(run.get("run"))) for run in runs]
    points = sorted((one for one in found if one is not None), key=lambda one: one[0].concurrency)
    if not name or not points:
        return f"none of {len(runs)} runs has its results" if name else "it has no model"
    lacking = len(found) - len(points)
    return result_of_curve(
        CurveFacts(
            name=name,
            identity=digest_of([entry.get("id"), runs]),
            organization=stripped_text(info.get("submitter_org_names")),
            submission=stripped_text(entry.get("id")),
            division=stripped_text(model.get("division")),
            precision=stripped_text(model.get("model_precision")),
            system=_system(combined),
            label="",
            durations_s={point.concurrency: duration for point, duration in points},
            points=tuple(point for point, _ in points),
            accuracy=(),
            files=(),
            notes=(f"{lacking} of {len(found)} runs have no tokens per second, TPOT or TTFT",) if lacking else (),
            made_utc="",
        )
    )


def curves_of_bundle(file: bytes, name: str) -> Iterator[NewResult | LeftOut]:
    """Give each curve of a bundle, and each submission without one, with why. Raises NotOfTool."""
    try:
        content = json_object(utf8_text(file))
    except ValueError as error:
        raise NotOfTool(f"{name}: {error}") from error
    entries, runs = content.get("submissions"), content.get("runs")
    if content.get("bundle_version") != VERSION or not isinstance(entries, list) or not isinstance(runs, list):
        raise NotOfTool(f"{name} is not a bundle of mlperf-viz: bundle_version {VERSION}, submissions and runs")
    rows = [run for run in runs if isinstance(run, dict)]
    for number, entry in enumerate(entries):
        said = mapping(entry)
        try:
            result = _curve(said, [run for run in rows if run.get("submission_id") == said.get("id")])
        except ValueError as error:  # NaN, which is not JSON
            result = str(error)
        yield LeftOut(f"submissions[{number}]", result) if isinstance(result, str) else result
