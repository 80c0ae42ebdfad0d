"""`tools/check_site.py` finds links that lead nowhere, and what would come from another host."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[1] / "tools" / "check_site.py"
spec = importlib.util.spec_from_file_location("check_site", PATH)
check_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_site)

SOUND = '<h1 id="top">A</h1><a href="b.html#low">b</a><a href="#top">up</a><img src="a%20b.png"><a href="https://arxiv.org">x</a>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text(SOUND)
    (tmp_path / "b.html").write_text('<p id="low">B</p><link rel="stylesheet" href="a.css">')
    (tmp_path / "a.css").write_text("p { background: url('a b.png') } i { content: url(data:image/png;base64,AA==) }")
    (tmp_path / "a b.png").write_bytes(b"x")
    return tmp_path


def test_a_sound_site_has_no_problems(site):
    assert check_site.problems(site) == []


@pytest.mark.parametrize(
    ("html", "sentence"),
    [
        ('<a href="c.html">c</a>', "links to c.html, which does not exist"),
        ('<a href="b.html#high">b</a>', "links to b.html#high, but there is no such anchor"),
        ('<a href="#high">b</a>', "links to #high, but there is no such anchor"),
        ('<img src="c.png">', "loads c.png, which does not exist"),
        ('<img srcset="a%20b.png, c.png 2x">', "loads c.png, which does not exist"),
        ('<script src="https://cdn.example/a.js"></script>', "loads https://cdn.example/a.js from another host"),
        ('<link rel="stylesheet" href="//cdn.example/a.css">', "loads //cdn.example/a.css from another host"),
        ('<link rel="preconnect" href="https://cdn.example">', "loads https://cdn.example from another host"),
        ('<p style="background: url(http://a.example/b)">', "loads http://a.example/b from another host"),
    ],
)
def test_each_problem_is_one_line(site, html, sentence):
    (site / "wrong.html").write_text(html)
    assert check_site.problems(site) == [f"wrong.html: {sentence}"]


def test_styles_are_read_too(site):
    (site / "wrong.css").write_text("@import 'https://fonts.example/css'; p { background: url(c.png) }")
    assert check_site.problems(site) == [
        "wrong.css: loads c.png, which does not exist",
        "wrong.css: loads https://fonts.example/css from another host",
    ]


def test_an_empty_folder_is_a_problem(tmp_path):
    assert check_site.problems(tmp_path) == [f"{tmp_path} has no pages"]
