import re
from html.parser import HTMLParser

import pytest

from coxfield import plotting
from coxfield_paper.report.blocks import Claim, Figure, Note, Section, Table, Verdict
from coxfield_paper.report.page import Page, duration, render, write


def section(**changes):
    figure = plotting.figure(4, 3)
    figure.subplots().plot([0, 1], [1, 0])
    fields = {
        "name": "table-9",
        "title": "Table 9: tests & errors",
        "blocks": (
            Table("Errors, %", ("data", "kind", "ours"), (("Synth", "a", "1 < 2"), ("Synth", "b", "3"))),
            Figure("A line", figure, "a line that falls", "line"),
            Note("A paragraph."),
        ),
        "seconds": 12.0,
        "missing": ("the data are in no package",),
        "claims": tuple(Claim("it falls", "it does", verdict) for verdict in Verdict),
    }
    return Section(**fields | changes)


@pytest.fixture
def page():
    return Page([section()], {"processor": "abacus"}, "1.2")


class Checker(HTMLParser):
    """Notes what is opened and not closed, and every address."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in {"meta", "link", "img", "br"}:
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in {"src", "href"}]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_asks_nothing_of_anyone(page):
    text = render(page)
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert all(re.match(r"#|data:", address) for address in checker.addresses)
    assert "url(" not in text
    assert "@import" not in text


def test_the_page_shows_every_block_claim_and_command(page):
    text = render(page)
    for words in (
        "Table 9: tests &amp; errors",
        "1 &lt; 2",
        "A paragraph.",
        "a line that falls",
        "coxfield reproduce table-9",
        "12 s of work",
        "the data are in no package",
        "abacus",
    ):
        assert words in text
    verdicts = re.findall(r'class="verdict (\w+)">([^<]+)<', text)
    tested = [verdict for verdict in Verdict if verdict != Verdict.NOT_TESTED]
    assert verdicts == [(verdict.name.lower(), verdict.value) for verdict in tested]
    assert "Not tested here: 1 more statement." in text


def test_what_was_computed_comes_first_and_the_rest_is_one_line():
    own = section(name="ours", title="Ours", beyond=True, missing=())
    left = [section(name=name, title=name.title(), computed=False, blocks=(Note("empty"),)) for name in ("one", "two")]
    text = render(Page([left[0], own, left[1], section()], {}, "1.2"))
    places = [text.index(f'id="{name}"') for name in ("table-9", "ours", "left")]
    assert places == sorted(places)
    assert "coxfield reproduce one two<" in text
    assert "empty" not in text
    assert text.index("What the paper says") < text.index('id="ours"') < text.index("What we aimed at")
    assert f"Of {3 * len(Verdict)} statements of the paper" in text


def test_the_page_and_its_pictures_are_written_and_written_the_same_again(page, tmp_path):
    path = write(page, tmp_path / "new")
    first = path.read_bytes()
    assert (tmp_path / "new" / "figures" / "line.png").read_bytes().startswith(b"\x89PNG")
    assert write(page, tmp_path / "new").read_bytes() == first


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (99, "99 s"), (120, "2 min"), (7200, "2.0 h")])
def test_durations(seconds, text):
    assert duration(seconds) == text
