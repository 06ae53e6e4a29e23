"""Every page of the app, in the order of the bar on top."""

from __future__ import annotations

from ett_dashboard.views import caches, checkpoints, definitions, failures, fleet, job, regressions, what_if
from ett_dashboard.views.page import Page

PAGES: tuple[Page, ...] = (
    Page(title="Fleet", path="", show=fleet.show),
    Page(title="Job", path="job", show=job.show),
    Page(title="Failures", path="failures", show=failures.show),
    Page(title="Caches", path="caches", show=caches.show),
    Page(title="Checkpoints", path="checkpoints", show=checkpoints.show),
    Page(title="What-if", path="what-if", show=what_if.show),
    Page(title="Regressions", path="regressions", show=regressions.show),
    Page(title="Definitions", path="definitions", show=definitions.show),
)
