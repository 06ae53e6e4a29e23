"""Every page of the app, in the order of the bar on top."""

from __future__ import annotations

from ett_dashboard.views import failures, fleet, job, regressions
from ett_dashboard.views.page import Page

PAGES: tuple[Page, ...] = (
    Page(title="Fleet", path="", show=fleet.show),
    Page(title="Job", path="job", show=job.show),
    Page(title="Failures", path="failures", show=failures.show),
    Page(title="Regressions", path="regressions", show=regressions.show),
)
