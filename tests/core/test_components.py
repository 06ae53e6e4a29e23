import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.components import (
    AREAS,
    COMPONENTS,
    GROUP_COLOURS,
    GROUPS,
    INIT_PHASES,
    LOOP_COMPONENT_OF_PHASE,
    area_of,
    group_of,
    group_seconds,
    init_component,
    meaning_of,
)


def test_the_names_and_their_order_are_frozen():
    assert " ".join(COMPONENTS) == (
        "training start.allocation start.process_start start.device_init start.process_group "
        "start.preproc_creation start.model_init start.sharding_plan start.data_warmup start.compile "
        "start.cache_load start.checkpoint_load start.other data_wait recompile checkpoint_blocking "
        "evaluation publish shutdown other unsaved_training stalled recover.teardown recover.queue "
        "recover.allocation recover.restart recover.process_start recover.device_init recover.process_group "
        "recover.preproc_creation recover.model_init recover.sharding_plan recover.data_warmup "
        "recover.compile recover.cache_load recover.checkpoint_load recover.other unobserved"
    )


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_component_has_a_group_an_area_and_a_meaning(component):
    assert group_of(component) in GROUPS
    assert area_of(component) in AREAS
    assert len(meaning_of(component)) > 10


def test_no_two_components_mean_the_same():
    assert len({meaning_of(component) for component in COMPONENTS}) == len(COMPONENTS)


def test_only_training_is_effective_and_only_unobserved_is_unknown():
    by_group = {group: {c for c in COMPONENTS if group_of(c) == group} for group in GROUPS}
    assert by_group["effective"] == {"training"}
    assert by_group["unknown"] == {"unobserved"}
    assert by_group["failure"] == {
        c for c in COMPONENTS if c.startswith("recover.") or c in ("stalled", "unsaved_training")
    }


def test_every_group_and_every_area_holds_a_component():
    assert {group_of(c) for c in COMPONENTS} == set(GROUPS)
    assert {area_of(c) for c in COMPONENTS} == set(AREAS)


def test_every_group_has_a_colour_of_its_own():
    assert len({GROUP_COLOURS[group] for group in GROUPS}) == len(GROUPS)


@pytest.mark.parametrize("prefix", ["start", "recover"])
@pytest.mark.parametrize("phase", [*INIT_PHASES, "some_plugin", "checkpoint", ""])
def test_a_phase_of_the_start_belongs_to_a_known_component(prefix, phase):
    assert init_component(prefix, phase) in COMPONENTS


def test_a_phase_of_the_loop_belongs_to_a_known_component():
    assert set(LOOP_COMPONENT_OF_PHASE.values()) <= set(COMPONENTS)


@given(st.dictionaries(st.sampled_from(COMPONENTS), st.integers(0, 10**9)))
def test_groups_share_out_the_same_seconds(components):
    groups = group_seconds(components)
    assert tuple(groups) == GROUPS
    assert sum(groups.values()) == sum(components.values())
