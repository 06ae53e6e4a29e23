"""How often the reference trainer saves, by its parts and its rank."""

from ett_trainer_hooks.reference.saving import policy_of
from ett_trainer_hooks.reference.settings import Settings


def ranks(rank=0, **more):
    return {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", **more}


def after_a_save(policy, hands):
    """The interval that follows a save of five seconds."""
    policy.begin()
    hands.move(8)
    with policy.saving(1):
        hands.move(5)
    policy.durable(1)
    return policy.interval_s


def test_without_the_part_the_interval_is_the_one_that_was_set(bench, hands):
    settings = Settings(checkpoint_every_s=8.0)
    policy = policy_of(settings, bench().recorder, lambda: hands.now_s, ranks())
    assert policy.interval_s == 8
    assert after_a_save(policy, hands) == 8


def test_with_the_part_it_begins_there_and_changes(bench, hands):
    made = bench()
    settings = Settings(checkpoint_every_s=8.0, parts="interval_control", checkpoint_at_least_every_s=900.0)
    policy = policy_of(settings, made.recorder, lambda: hands.now_s, ranks())
    assert policy.interval_s == 8
    assert after_a_save(policy, hands) == 900
    assert "supposed of 2 nodes" in made.of("decision")[-1].why


def test_other_ranks_ask_for_no_save(bench, hands):
    policy = policy_of(Settings(), bench().recorder, lambda: hands.now_s, ranks(rank=1))
    after_a_save(policy, hands)
    hands.move(1e6)
    assert not policy.is_due()
