"""The server: who is refused, what is served, and what tabs hear."""

import http.client
import json
import os
import socket
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from sklearn.datasets import make_blobs

import coxfield.studio
from coxfield.studio.rows import from_arrays
from coxfield.studio.server import PAGES, Studio, show
from coxfield.studio.session import Session

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    X, _ = make_blobs(60, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    rows = from_arrays(X, texts=[SCRIPT] * 60, images=np.zeros((60, 2, 3), np.uint8))
    found = Studio(Session(rows, folder / "x.labels.csv", check_every=0), save=lambda: "saved it")
    found.start()
    yield found
    found.stop()


def raw(studio, path, method="GET", body=None, **headers):
    """Status and body of a request with headers that no browser would let a page set."""
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for name, value in ({"Host": f"127.0.0.1:{studio.port}"} | headers).items():
        connection.putheader(name.replace("_", "-"), value)
    content = b"" if body is None else json.dumps(body).encode()
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders(content)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def act(studio, **body):
    return httpx.post(studio.address + "act", json=body, timeout=20)


def test_only_those_who_know_the_token_come_in(studio):
    assert raw(studio, f"/{studio.token}/state")[0] == 200
    for path in ("/", "/state", "/static/app.js", "/x" * 20, f"/{studio.token[:-1]}/state", f"//{studio.token}/state"):
        status, body = raw(studio, path)
        assert status == 403
        assert b"token" in body
        assert studio.token.encode() not in body


def test_two_studios_have_different_tokens(studio):
    X = np.arange(20.0).reshape(10, 2)
    other = Studio(Session(from_arrays(X)))
    assert other.token != studio.token
    assert len(other.token) >= 32
    other.socket.close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", ""])
def test_a_foreign_host_is_refused(studio, host):
    assert raw(studio, f"/{studio.token}/state", Host=host.format(port=studio.port))[0] in (400, 403)
    assert raw(studio, f"/{studio.token}/state", Host=f"localhost:{studio.port}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_a_foreign_origin_is_refused(studio, origin):
    origin = origin.format(port=studio.port)
    before = len(studio.session.labels.steps)
    body = {"do": "label", "rows": [0], "label": "x"}
    for method, path in (("POST", "act"), ("GET", "state"), ("POST", "close")):
        assert raw(studio, f"/{studio.token}/{path}", method, body, Origin=origin)[0] == 403
    assert raw(studio, f"/{studio.token}/act", "POST", body, Sec_Fetch_Site="cross-site")[0] == 403
    assert len(studio.session.labels.steps) == before
    assert not studio.closed.is_set()
    own = raw(studio, f"/{studio.token}/state", Origin=f"http://127.0.0.1:{studio.port}")
    assert own[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "static/../server.py",
        "static/..%2fserver.py",
        "static/%2e%2e/session.py",
        "static//etc/passwd",
        "image/../state",
        "image/99",
    ],
)
def test_no_other_file_is_served(studio, path):
    status, body = raw(studio, f"/{studio.token}/{path}")
    assert status in (400, 403, 404)
    assert b"import" not in body


def test_it_listens_on_this_machine_alone(studio):
    assert studio.socket.getsockname()[0] == "127.0.0.1"


def test_pages_may_load_nothing_foreign(studio):
    answer = httpx.get(studio.address)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"
    for name, path in PAGES.items():
        text = path.read_text(encoding="utf-8")
        assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), f"{name} names another host"
        assert httpx.get(f"{studio.address}static/{name}").text == text


def test_cells_are_data_and_not_pages(studio):
    answer = httpx.get(studio.address + "card/0")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["text"] == SCRIPT
    for path in PAGES.values():
        assert "innerHTML" not in path.read_text(encoding="utf-8")


def test_a_key_is_a_label_and_the_next_card(studio):
    shown = act(studio, do="next", tab="a").json()["card"]
    answer = act(studio, do="label", tab="a", rows=[shown["row"]], label="cat").json()
    assert answer["count"] == 1
    assert answer["card"]["row"] != shown["row"]
    assert answer["state"]["labelled"] == 1
    content = studio.session.journal.path.read_text()
    assert f",label,{shown['row'] + 1},cat," in content
    back = act(studio, do="undo", tab="a").json()
    assert back["card"]["row"] == shown["row"]
    assert back["state"]["labelled"] == 0


def test_a_class_without_a_row(studio):
    names = [one["name"] for one in act(studio, do="class", label="emu").json()["state"]["classes"]]
    assert "emu" in names
    assert "emu" not in [one["name"] for one in act(studio, do="undo").json()["state"]["classes"]]


def test_places_and_colours_are_bytes(studio):
    places = np.frombuffer(httpx.get(studio.address + "places").content, "<f4").reshape(-1, 2)
    assert places.shape == (60, 2)
    assert np.abs(places).max() <= 1
    assert len(httpx.get(studio.address + "colours").content) == 240
    assert httpx.get(studio.address + "image/3").content.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"do": "dance"},
        {"do": "label", "rows": [999], "label": "x"},
        {"do": "label", "rows": "x", "label": "x"},
        {"do": "label", "rows": [0], "label": " "},
        {"do": "skip", "rows": []},
        {"do": "rename", "label": "nobody", "other": "x"},
        {"do": "show", "rows": [-1]},
    ],
)
def test_nonsense_is_a_sentence(studio, body):
    answer = act(studio, **body)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


def test_what_is_not_json_or_too_large_is_refused(studio):
    assert httpx.post(studio.address + "act", content=b"{").status_code == 400
    assert raw(studio, f"/{studio.token}/act", "POST", Content_Length="99999999999")[0] in (400, 413)


def test_tabs_hear_of_labels_of_others(studio):
    with httpx.stream("GET", studio.address + "events?tab=b", timeout=20) as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        assert next(lines) == "data: hello"
        act(studio, do="label", tab="a", rows=[1], label="dog")
        assert "data: labels" in [next(lines)]
    other = Session(studio.session.rows, studio.session.journal.path, by="else")
    other.label([2], "dog")
    end = time.monotonic() + 20
    while httpx.get(studio.address + "state").json()["labelled"] < 2:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_full_disk_is_told(studio, monkeypatch):
    def full(number, content):
        raise OSError(28, "No space left on device")

    before = httpx.get(studio.address + "state").json()["labelled"]
    monkeypatch.setattr(os, "write", full)
    answer = act(studio, do="label", rows=[5], label="cat")
    monkeypatch.undo()
    assert answer.status_code == 507
    assert "No space left on device" in answer.json()["error"]
    assert httpx.get(studio.address + "state").json()["labelled"] == before


def test_a_port_in_use_is_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} is in use"):
            Studio(Session(from_arrays(np.arange(20.0).reshape(10, 2))), port=port)


def test_the_address_is_not_on_the_command_line_of_the_browser(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    show("http://127.0.0.1:1/secret/")
    assert "secret" not in opened[0]
    path = Path(opened[0].removeprefix("file://"))
    assert "http://127.0.0.1:1/secret/" in path.read_text()
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    path.unlink()


def test_open_returns_the_labels_when_the_page_is_closed():
    X, truth = make_blobs(60, centers=[[0, 0], [9, 0]], random_state=0)

    def person(address):
        for row in (0, 1, 2, 3):
            httpx.post(address + "act", json={"do": "label", "rows": [row], "label": f"class {truth[row]}"}, timeout=20)
        assert httpx.post(address + "close", json={}, timeout=60).status_code == 200

    labels = coxfield.studio.open(X, browser=False, announce=person)
    assert labels[:4].tolist() == [f"class {code}" for code in truth[:4]]
    assert set(labels[4:]) == {None}
