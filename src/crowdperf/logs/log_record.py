"""What result.json says of LoadGen's log: the harness writes it, and whoever checks a result derives it again. Pure."""

from dataclasses import asdict

from crowdperf.logs.run_log import Json, LoadGenLog


def record_of_log(log: LoadGenLog) -> dict[str, Json]:
    """Return the verdict, the figures, the counts of samples and the seeds of a log by their keys in result.json."""
    figure = log.metric if log.tokens is None else log.published
    metric: Json = None
    if figure is not None:
        metric = {
            "name": figure.metric.name,
            "value": figure.value,
            "unit": figure.metric.unit,
            "higher_is_better": figure.metric.higher_is_better,
        }
    return {
        "valid": log.is_valid,
        "invalid_reasons": list(log.invalid_reasons),
        "errors": log.error_count,
        "metric": metric,
        "latency": None if log.latencies is None else asdict(log.latencies),
        "early_stopping": None if log.early_stopping is None else asdict(log.early_stopping),
        "min_duration_met": log.is_min_duration_met,
        "min_queries_met": log.is_min_query_count_met,
        "duration_s": log.duration_s,
        "query_count": log.query_count,
        "generated_query_count": log.generated_query_count,
        "samples_per_query": log.generated_samples_per_query,
        "sample_counts": {
            "dataset": log.qsl_total_count,
            "performance": log.effective.performance_sample_count,
            "accuracy": log.effective.accuracy_sample_count,
        },
        "loadgen_version": log.loadgen_version,
        "seeds": asdict(log.seeds),
    }
