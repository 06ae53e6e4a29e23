"""A whole fleet: the stories of all its jobs, one after the other or side by side."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from ett_cli.simulate.chance import Chance
from ett_cli.simulate.disorder import disturbed
from ett_cli.simulate.plans import plan_of
from ett_cli.simulate.settings import Scenario
from ett_cli.simulate.stories import Story
from ett_cli.simulate.voices import Origin, Told


class Fleet:
    """The jobs of a scenario over the window that ends at `end_ms`, in Unix milliseconds."""

    def __init__(self, scenario: Scenario, end_ms: int) -> None:
        self.scenario = scenario
        self.origin = Origin(end_ms - scenario.window_ms)

    def story(self, index: int) -> Story:
        """The job of an index, told from its beginning."""
        chance = Chance(f"{self.scenario.seed}/job/{index}")
        return Story(self.scenario, plan_of(self.scenario, index, chance), chance, self.origin)

    def stories(self, jobs: int | None = None) -> Iterator[Story]:
        """The first jobs (those of the scenario, unless told), in the order in which they are submitted."""
        return (self.story(index) for index in range(self.scenario.jobs if jobs is None else jobs))

    def told(self, story: Story, until_ms: int) -> Iterator[Told]:
        """The events of a job up to a moment, in the order in which they arrive."""
        events = story.events(until_ms)
        if not self.scenario.disorder:
            return events
        chance = Chance(f"{self.scenario.seed}/disorder/{story.plan.place}")
        return disturbed(events, chance, self.scenario.disorder)

    def merged(self, until_ms: int) -> Iterator[Told]:
        """The events of all jobs side by side, in the order in which they arrive.

        Jobs go on coming after the window, as often as in it.
        """
        jobs = -(-self.scenario.jobs * until_ms // self.scenario.window_ms)
        streams = (self.told(story, until_ms) for story in self.stories(max(1, jobs)))
        return merge(*streams, key=lambda told: told[0])
