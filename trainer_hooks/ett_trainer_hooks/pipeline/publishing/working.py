"""What a publishing process does with one model: takes it, publishes it, says what came of it."""

from __future__ import annotations

import sys
import time
import traceback

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.guard import type_and_text
from ett_trainer_hooks.pipeline.checkpoint.asking import RemoteError
from ett_trainer_hooks.pipeline.checkpoint.manifest import DamagedError
from ett_trainer_hooks.pipeline.publishing.card import Form
from ett_trainer_hooks.pipeline.publishing.exporting import ExportError
from ett_trainer_hooks.pipeline.publishing.handover import HandOver, Outcome
from ett_trainer_hooks.pipeline.publishing.places import place_at
from ett_trainer_hooks.pipeline.publishing.publishable import UnfitError
from ett_trainer_hooks.pipeline.publishing.publisher import DisagreementError, Publisher
from ett_trainer_hooks.pipeline.publishing.statuses import AGAIN, NEVER, PUBLISHED
from ett_trainer_hooks.pipeline.takes import Holder, Lease, LostError, deaths, take

MOST_DEATHS = 12
"""A model that so many publishers have taken, and neither finished nor let go, kills them."""


def run(
    handover: HandOver, address: str, recorder: Recorder, *, form: Form, tolerance: float | None = None
) -> int:
    """Publish a model under a lease; returns the status to exit with."""
    try:
        if (outcome := handover.outcome()) is not None:
            return _told(outcome)
        taken = take(handover.folder, recorder.identity.job_id)
        if isinstance(taken, Holder):
            print(f"process {taken.pid} on {taken.node} is publishing it", file=sys.stderr, flush=True)
            return AGAIN
        try:
            if (outcome := handover.outcome()) is None:  # its holder may have finished the moment before
                outcome = _under_lease(handover, address, recorder, taken, form, tolerance)
            return _told(handover.end(outcome))
        finally:
            taken.release()
    except (OSError, RemoteError, LostError) as error:
        recorder.failure(error)
        print(f"not published now: {type_and_text(error)}", file=sys.stderr, flush=True)
        return AGAIN


def _under_lease(  # noqa: PLR0913, PLR0917 - settings
    handover: HandOver,
    address: str,
    recorder: Recorder,
    lease: Lease,
    form: Form,
    tolerance: float | None,
) -> Outcome:
    """What came of it; what may go well another time is raised."""
    by = recorder.identity.job_id
    if (died := deaths(handover.folder, but=lease.number)) >= MOST_DEATHS:
        reason = f"{died} publishers have died of it; --again tries it once more"
        return Outcome(state="failed", by=by, at=time.time(), reason=reason)
    try:
        place = place_at(address)
        try:
            publisher = Publisher(handover, place, lease, recorder, form=form, tolerance=tolerance)
            name, card = publisher.publish()
        finally:
            place.close()
    except (OSError, RemoteError, LostError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not tried again
        if not isinstance(error, (DamagedError, UnfitError, ExportError, DisagreementError)):
            traceback.print_exc()
        recorder.failure(error)
        reason = type_and_text(error)
        return Outcome(state="failed", by=by, at=time.time(), reason=reason)
    return Outcome(
        state="done",
        by=by,
        at=time.time(),
        place=f"{place.address.rstrip('/')}/{name}",
        largest_difference=card.validation.largest_difference if card else None,
        size=card.size if card else None,
    )


def _told(outcome: Outcome) -> int:
    if outcome.state == "done":
        print(f"published: {outcome.place}", flush=True)
        return PUBLISHED
    print(f"not published: {outcome.reason}", file=sys.stderr, flush=True)
    return NEVER
