"""Every word that the pages use has a definition, the one that the pages themselves show."""

from __future__ import annotations

import re

import pytest

from ett_core.components import AREAS, COMPONENTS
from ett_core.failures import CLASSES
from ett_core.fleet.caches import VERDICTS
from ett_dashboard import frames
from ett_dashboard.definitions import as_html, definition_of, parts
from ett_dashboard.partition import area_table, partition_table

KNOWN = parts()


@pytest.mark.parametrize(
    "word", [*COMPONENTS, *CLASSES, *VERDICTS, *AREAS, "effective", "Unsaved now", "Back after"]
)
def test_a_word_of_the_pages_is_defined(word):
    assert definition_of(word, KNOWN).meaning


def test_no_word_is_defined_twice_in_a_part_or_without_a_meaning():
    for part in KNOWN:
        words = [one.word for one in part.words]
        assert len(set(words)) == len(words) > 0, part.title
        assert all(one.word and one.meaning for one in part.words), part.title


def test_a_part_shows_each_of_its_words_with_all_that_is_said():
    part = next(part for part in KNOWN if part.title == "Classes of failures")
    html = as_html(part)
    assert html.count("<tr>") == len(CLASSES)
    assert "Take the node out and power-cycle it; start on another node." in html


def test_components_lead_to_their_definitions_and_areas_say_theirs():
    """With the settings of the viewer; in a file that is read without the app they lead nowhere."""
    shares = frames.partition({"training": 2.0, "recover.queue": 1.0})
    told = partition_table(shares, {"zone": "Asia/Tokyo", "id": "j"})
    assert re.findall(r'href="([^"]*)"', told) == [
        "definitions?zone=Asia%2FTokyo&amp;of=training",
        "definitions?zone=Asia%2FTokyo&amp;of=recover.queue",
    ]
    assert "href" not in partition_table(shares)
    areas = area_table({"scheduling": 3.0, "later": 1.0})
    assert 'title="waiting for hardware: allocation and queue"' in areas
    assert 'title="later"' in areas
