"""Every metric family: name, type, labels and words. The names are a contract: add, never rename.

The exporter exposes from this table, boards and rules are written against it, a test freezes
it. Base units; `_total` on counters; ratios from 0 to 1; no label that can grow without bound.
A `summary` has the series `<name>_sum` and `<name>_count`, a `histogram` also `<name>_bucket` with the
further label `le`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

GAUGE, COUNTER, SUMMARY, HISTOGRAM = "gauge", "counter", "summary", "histogram"
START_BOUNDS_S = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14_400.0)
"""Upper bounds of the buckets of times to start and to recover, in seconds."""
BLOCKING_BOUNDS_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the buckets of blocking by checkpoints, in seconds."""


class Family(msgspec.Struct, frozen=True):
    """One metric family."""

    kind: str
    labels: tuple[str, ...]
    help: str


def _job(kind: str, text: str, *labels: str) -> Family:
    return Family(kind, ("job_id", *labels), text)


FAMILIES: Mapping[str, Family] = {
    "ett_job_info": _job(
        GAUGE,
        "What describes a job; always 1.",
        *("job_name", "team", "model", "cluster", "accelerator_type", "scheduler", "purpose"),
    ),
    "ett_job_state": _job(GAUGE, "The state that the job is in; always 1.", "state"),
    "ett_job_component_seconds": _job(
        GAUGE, "Wall time of the job by component; sums to ett_job_wall_seconds.", "component"
    ),
    "ett_job_wall_seconds": _job(GAUGE, "Wall time of the job so far."),
    "ett_job_held_seconds": _job(GAUGE, "Wall time of the job in which its hardware was held."),
    "ett_job_effective_ratio": _job(
        GAUGE, "Share of wall time spent on training that survives, in a trailing window.", "window"
    ),
    "ett_job_time_to_start_seconds": _job(GAUGE, "From the beginning of the job to its first loop."),
    "ett_job_time_to_recover_seconds": _job(SUMMARY, "From a failure to the next beginning of a loop."),
    "ett_job_failures_total": _job(COUNTER, "Failed attempts whose cause has settled.", "domain"),
    "ett_job_failures_in_a_row": _job(
        GAUGE,
        "Failures in a row of one class that left the job where it was, up to the latest whose cause has "
        "settled; absent once the job is past it.",
        "failure_class",
    ),
    "ett_job_unsaved_exposure_seconds": _job(GAUGE, "Training that would be lost if the job died now."),
    "ett_job_unsaved_training_seconds": _job(GAUGE, "Training that was lost so far."),
    "ett_job_last_progress_timestamp_seconds": _job(GAUGE, "When the job last reported a completed step."),
    "ett_job_step": _job(GAUGE, "Last completed step."),
    "ett_job_attempt": _job(GAUGE, "Number of the current or last attempt."),
    "ett_job_accelerators": _job(GAUGE, "Accelerators held by the job; its ranks where it names none."),
    "ett_job_samples_total": _job(COUNTER, "Samples consumed by all ranks, each counting its own."),
    "ett_job_checkpoint_blocking_seconds": _job(
        SUMMARY, "Time that checkpoints blocked the trainer; of each the slowest rank."
    ),
    "ett_job_checkpoint_last_durable_timestamp_seconds": _job(
        GAUGE, "When a checkpoint last became durable."
    ),
    "ett_job_checkpoint_bytes": _job(GAUGE, "Size of the latest durable checkpoint."),
    "ett_job_checkpoint_failures_total": _job(COUNTER, "Checkpoints that will never be durable."),
    "ett_job_checkpoint_interval_seconds": _job(
        GAUGE, "Time between the latest checkpoints, and the one that would waste least.", "kind"
    ),
    "ett_job_checkpoint_slowed_seconds": _job(
        GAUGE,
        "By how much one save in the background slows the steps beside it, median of the latest; "
        "absent where nobody can tell.",
    ),
    "ett_job_compile_cache_requests_total": _job(
        COUNTER, "Requests to a compile cache: hit, miss or bypass.", "cache", "result"
    ),
    "ett_job_compile_seconds_total": _job(COUNTER, "Compile time of all ranks by stage.", "stage"),
    "ett_job_compile_cache_saved_seconds_total": _job(
        COUNTER, "Compile time that caches saved, as the compiler estimates it."
    ),
    "ett_job_compile_remote_requests_total": _job(COUNTER, "Requests to remote compile caches."),
    "ett_fleet_jobs": Family(GAUGE, ("state", "cluster", "team"), "Jobs on /metrics by state."),
    "ett_fleet_effective_ratio": Family(
        GAUGE,
        ("window", "weight", "cluster"),
        "Share of effective training: of wall time (job) or of held accelerator time (accelerator).",
    ),
    "ett_fleet_component_seconds": Family(
        GAUGE, ("window", "cluster", "component"), "Held accelerator time by component, trailing window."
    ),
    "ett_fleet_final_accelerator_seconds_total": Family(
        COUNTER,
        ("cluster", "team", "component"),
        "Held accelerator time by component that is final, since the start of the exporter.",
    ),
    "ett_fleet_reclassified_accelerator_seconds_total": Family(
        COUNTER,
        ("cluster", "team", "component"),
        "Final held accelerator time that was taken back: training lost after all, events that came late.",
    ),
    "ett_fleet_time_to_start_seconds": Family(
        HISTOGRAM, ("cluster",), "From the beginning of a job to its first loop."
    ),
    "ett_fleet_time_to_recover_seconds": Family(
        HISTOGRAM, ("cluster",), "From a failure to the next beginning of a loop."
    ),
    "ett_fleet_checkpoint_blocking_seconds": Family(
        HISTOGRAM, ("cluster",), "Time that a checkpoint blocked the trainer; of each the slowest rank."
    ),
    "ett_fleet_failures_total": Family(
        COUNTER, ("failure_class", "domain", "cluster"), "Failed attempts whose cause has settled."
    ),
    "ett_fleet_lost_accelerator_seconds_total": Family(
        COUNTER,
        ("failure_class", "domain", "cluster"),
        "Held accelerator time that failures cost: training lost, standing still, recovering.",
    ),
    "ett_node_failures_total": Family(
        COUNTER, ("node", "failure_class"), "Failed attempts that began on a node; only nodes that failed."
    ),
    "ett_exporter_build_info": Family(GAUGE, ("version",), "Version of the exporter; always 1."),
    "ett_exporter_jobs": Family(GAUGE, ("shown",), "Jobs known, by whether they are on /metrics."),
    "ett_exporter_series": Family(GAUGE, (), "Series in this answer, without this one."),
    "ett_exporter_jobs_left_out": Family(
        GAUGE, (), "Jobs whose series are not in this answer, because the limit of series is reached."
    ),
    "ett_exporter_broken_jobs": Family(
        GAUGE, (), "Jobs that cannot be accounted for; the log says why. They show what was known before."
    ),
    "ett_exporter_view_age_seconds": Family(
        GAUGE, (), "Age of the oldest figures in this answer: more than a few seconds is overload."
    ),
    "ett_exporter_scrape_seconds": Family(GAUGE, (), "Time that the answer before this one took."),
    "ett_exporter_ingested_events_total": Family(COUNTER, (), "Events taken in and made durable."),
    "ett_exporter_ingested_segments_total": Family(COUNTER, (), "Segments taken in."),
    "ett_exporter_duplicate_events_total": Family(COUNTER, (), "Events that were held already."),
    "ett_exporter_rejected_lines_total": Family(
        COUNTER, (), "Lines that were no events, or events that count nowhere."
    ),
    "ett_exporter_refused_requests_total": Family(COUNTER, (), "Ingest requests refused whole."),
    "ett_exporter_store_write_seconds": Family(SUMMARY, (), "Time to make a segment durable."),
}
"""Family name (for counters with `_total`) to what it is."""


def series_names(name: str) -> tuple[str, ...]:
    """Names of the series of a family.

    >>> series_names("ett_job_time_to_recover_seconds")
    ('ett_job_time_to_recover_seconds_sum', 'ett_job_time_to_recover_seconds_count')
    """
    suffixes = {SUMMARY: ("_sum", "_count"), HISTOGRAM: ("_bucket", "_sum", "_count")}
    return tuple(f"{name}{suffix}" for suffix in suffixes.get(FAMILIES[name].kind, ("",)))
