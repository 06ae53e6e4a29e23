"""What all parts of a job's story share: its books, its steps, its voices, and what is still due.

Moments are milliseconds from the beginning of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from ett_cli.simulate.catalogue import Cause
from ett_cli.simulate.chance import Chance
from ett_cli.simulate.hazards import node_name
from ett_cli.simulate.ledger import Ledger
from ett_cli.simulate.plans import GPUS_PER_NODE, Plan
from ett_cli.simulate.settings import Scenario
from ett_cli.simulate.voices import Origin, Told, Voice
from ett_core.events import LAUNCHER_RANK, Clock, Evidence, Heartbeat

HEARTBEAT_MS = 240_000
CHECKPOINTS_KEPT = 3

Telling: TypeAlias = Generator[Told, None, None]
TellingUntil: TypeAlias = Generator[Told, None, int]
"""Tells events and returns the moment at which it was through."""


class Hardware(NamedTuple):
    """What the scheduler gave, and when; `limit_ms` is when it takes it back."""

    allocated_ms: int
    nodes: list[str]
    launchers: dict[str, Voice]
    limit_ms: int | None

    def node_of(self, rank: int) -> str:
        """The node of a rank."""
        return self.nodes[rank // GPUS_PER_NODE]


class Ending(NamedTuple):
    """How an attempt ended: at `at_ms` nobody of it is left. `cause` is None where it was meant."""

    at_ms: int
    cause: Cause | None
    before_loop: bool = False


class Scene:
    """State of one job's story."""

    def __init__(self, scenario: Scenario, plan: Plan, chance: Chance, origin: Origin) -> None:
        self.scenario = scenario
        self.plan = plan
        self.chance = chance
        self.origin = origin
        self.ledger = Ledger(plan.job_id, plan.labels, plan.world_size, origin)
        self.step = 0
        self.resume_step = 0
        self.valid: list[int] = []
        """Steps of the latest checkpoints that can be loaded."""
        self.uploaded_ms = 0
        """When the upload in flight will be through."""
        self.doomed: Cause | None = None
        """What the next save will end by."""
        self.beating = self.voice(LAUNCHER_RANK, "")
        """The launcher of the first node, which sends heartbeats."""
        self.beat_ms = 0
        self.due: list[tuple[int, int, Callable[[int], Iterator[Told]]]] = []
        self._ordered = 0
        self._receiver: Voice | None = None

    # -- who speaks --------------------------------------------------------------------------

    def voice(self, rank: int, node: str) -> Voice:
        """A new writing process."""
        offset_ms = clock_offset_ms(self.scenario, node)
        name = self.chance.name64()
        return Voice(self.plan.job_id, name, rank, node, origin=self.origin, offset_ms=offset_ms)

    def allocate(self, at_ms: int) -> Hardware:
        """Nodes for the job, with a launcher on each that has ranks that report."""
        plan = self.plan
        numbers = self.chance.sample(range(max(self.scenario.cluster_nodes, plan.nodes)), plan.nodes)
        nodes = [node_name(plan.cluster, number) for number in numbers]
        speaking = dict.fromkeys(nodes[rank // GPUS_PER_NODE] for rank in plan.reporters)
        launchers = {node: self.voice(LAUNCHER_RANK, node) for node in speaking}
        limit_ms = None if plan.limit_ms is None else at_ms + plan.limit_ms
        return Hardware(at_ms, nodes, launchers, limit_ms)

    def relaunch(self, hardware: Hardware) -> Hardware:
        """The same hardware with new launchers."""
        launchers = {node: self.voice(LAUNCHER_RANK, node) for node in hardware.launchers}
        return hardware._replace(launchers=launchers)

    def tell_clock(self, voice: Voice, at_ms: int) -> Telling:
        """What the receiver finds of a writer's clock, where it is wrong."""
        if not voice.offset_ms:
            return
        if self._receiver is None:
            name = self.chance.name64()
            self._receiver = Voice(self.plan.job_id, name, LAUNCHER_RANK, "", origin=self.origin)
        self._receiver.attempt = voice.attempt
        offset_s = voice.offset_ms / 1000
        yield self._receiver.say(Clock, at_ms, of_writer=voice.writer, offset_s=offset_s)

    def tell_evidence(self, voice: Voice, cause: Cause, at_ms: int, rank: int, node: str) -> Telling:
        """What logs say of a cause, seen a moment before it is told."""
        observed_at = voice.unix_s(at_ms - 1_200)
        for text in self.texts(cause.lines, rank, node):
            yield voice.say(Evidence, at_ms, source=cause.source, text=text, observed_at=observed_at)

    def texts(self, lines: tuple[str, ...], rank: int, node: str) -> list[str]:
        """Templates of log lines, filled in."""
        chance = self.chance
        words = {
            "rank": rank,
            "node": node,
            "gpu": rank % GPUS_PER_NODE,
            "pid": chance.randint(1_000, 99_999),
            "bus": f"0000:{chance.choice(('1b', '3b', '4c', '5d', '9b', 'bb', 'cb', 'db'))}:00",
            "n": chance.randint(100, 99_999),
        }
        return [line.format(**words) for line in lines]

    # -- what is due -------------------------------------------------------------------------

    def later(self, at_ms: int, tell: Callable[[int], Iterator[Told]]) -> None:
        """Put off what `tell` tells until a moment, which it is given."""
        self._ordered += 1
        heappush(self.due, (at_ms, self._ordered, tell))

    def forget(self) -> None:
        """The processes are gone, and what they were about to do with them."""
        self.due.clear()
        self.uploaded_ms = 0

    def is_due(self, until_ms: int) -> bool:
        """Whether anything is due by a moment."""
        return self.beat_ms <= until_ms or (bool(self.due) and self.due[0][0] <= until_ms)

    def pass_time(self, until_ms: int) -> Telling:
        """Everything that is due by a moment: heartbeats, and what was put off."""
        due = self.due
        while self.is_due(until_ms):
            if due and due[0][0] <= min(until_ms, self.beat_ms):
                at_ms, _, tell = heappop(due)
                yield from tell(at_ms)
            else:
                yield self.beating.say(Heartbeat, self.beat_ms)
                self.beat_ms += HEARTBEAT_MS

    # -- steps -------------------------------------------------------------------------------

    def keep_checkpoint(self, step: int) -> None:
        """The checkpoint of a step can be loaded from now on."""
        if step not in self.valid:
            self.valid = [*self.valid[-CHECKPOINTS_KEPT + 1 :], step]

    def lose_checkpoint(self, step: int) -> None:
        """The checkpoint of a step turned out to be damaged; the one before it is next."""
        self.valid = [kept for kept in self.valid if kept != step]
        self.fall_back()

    def fall_back(self) -> None:
        """The next attempt goes on from the latest checkpoint that can be loaded."""
        self.resume_step = max((step for step in self.valid if step <= self.step), default=0)


def clock_offset_ms(scenario: Scenario, node: str) -> int:
    """How far the clock of a node is ahead, 0 for most; always the same in a fleet."""
    chance = Chance(f"{scenario.seed}/clock/{node}")
    if not node or not chance.hit(scenario.skew):
        return 0
    return chance.choice((-1, 1)) * chance.between_ms(5.0, 3600.0)
