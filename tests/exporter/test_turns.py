"""Turns: nobody is starved, nothing leaks, and too many are told so."""

from __future__ import annotations

import asyncio

import pytest

from ett_exporter.turns import CrowdedError, Room, Turns


async def worked(turns, requests):
    """The order in which requests (their senders, in order of arrival) get their turns."""
    order = []

    async def work(sender):
        async with turns.turn(sender):
            order.append(sender)
            await asyncio.sleep(0)

    await asyncio.gather(*map(work, requests))
    return order


def test_one_sender_cannot_starve_the_others():
    """Who brings a hundred requests waits after each of them for the one request of another."""
    turns = Turns(Room(at_once=1, waiting=1000, waiting_of_sender=1000))
    order = asyncio.run(worked(turns, ["greedy"] * 100 + ["modest"] * 2))
    assert order.index("modest") <= 3
    assert [i for i, who in enumerate(order) if who == "modest"][1] <= 5
    assert order.count("greedy") == 100


def test_a_sender_that_is_alone_has_every_turn():
    """Without others, one sender works with as many requests at once as there are turns."""

    async def most_at_once():
        turns, inside, most = Turns(Room(at_once=4, waiting=10, waiting_of_sender=10)), 0, 0

        async def work():
            nonlocal inside, most
            async with turns.turn("a"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work() for _ in range(12)))
        return most

    assert asyncio.run(most_at_once()) == 4


@pytest.mark.parametrize(
    ("room", "own"),
    [
        (Room(at_once=1, waiting=100, waiting_of_sender=2), True),
        (Room(at_once=1, waiting=2, waiting_of_sender=100), False),
    ],
)
def test_too_many_are_told_whose_they_are(room, own):
    """Beyond the room the answer says whether the sender or all of them wait too long."""

    async def crowd():
        return await asyncio.gather(*(worked(turns, ["a"]) for _ in range(4)), return_exceptions=True)

    turns = Turns(room)
    results = asyncio.run(crowd())
    assert results[:3] == [["a"], ["a"], ["a"]]
    assert isinstance(results[3], CrowdedError)
    assert results[3].of_sender is own


def test_who_leaves_while_waiting_or_working_gives_the_turn_back():
    """Cancelled requests, before and after they got their turn, leave no turn behind."""

    async def leave():
        turns = Turns(Room(at_once=1, waiting=10, waiting_of_sender=10))
        tasks = [asyncio.create_task(worked(turns, ["a"])) for _ in range(5)]
        await asyncio.sleep(0)
        for task in tasks[:4]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return await asyncio.wait_for(worked(turns, ["b", "c"]), 5)

    assert asyncio.run(leave()) == ["b", "c"]
