"""`coxfield serve`: a real server on a free port of this computer, asked by a real client."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import flowers, refusal
from coxfield import LGCPClassifier
from coxfield.io import model_file

uvicorn = pytest.importorskip("uvicorn")
serving = pytest.importorskip("coxfield.apps.cli.serving")

LIMIT = 100_000
NAMES = ("length", "width")


@contextmanager
def running(served, hosts=("127.0.0.1",)):
    """The port of a server that runs in a thread of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(serving.application(served, list(hosts)), log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rows = flowers(60)
    path = tmp_path_factory.mktemp("model") / "model.skops"
    model = LGCPClassifier(selection="loo_error").fit(rows[NAMES].to_numpy(), rows["species"].to_numpy().astype(str))
    ids = rows["name"].to_list()
    model_file.save(model, path, target="species", features=NAMES, id_column="name", ids=ids)
    return model_file.load(path)


@pytest.fixture(scope="module")
def port(saved):
    with running(serving.Served(saved, "model.skops", LIMIT)) as port:
        yield port


def ask(port, path, body=None, headers=None, method=None):
    """Status and content of an answer; `body` is JSON unless it is bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method or ("GET" if body is None else "POST"), path, content, headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text) if "json" in answer.headers["content-type"] else text


def rows(n):
    return flowers(n)["name", "width", "length"].to_dicts()  # in another order than the model has them


def matrix(some):
    return np.array([[row[name] for name in NAMES] for row in some])


def test_predictions_are_those_of_the_library(port, saved):
    some = rows(9)
    status, found = ask(port, "/predict", some)
    assert status == 200
    assert [one["species"] for one in found] == saved.model.predict(matrix(some)).tolist()
    given = [list(one["probabilities"].values()) for one in found]
    np.testing.assert_allclose(given, saved.model.predict_proba(matrix(some)), rtol=1e-12)
    assert [one["name"] for one in found] == [row["name"] for row in some]
    assert set(found[0]["probabilities"]) == {"cat", "dog"}


@pytest.mark.parametrize("path", ["/predict", "/reasons", "/sets"])
def test_one_row_is_answered_by_one_answer(port, path):
    (row,) = rows(1)
    assert ask(port, path, [row])[1] == [ask(port, path, row)[1]]


def test_reasons_add_up_to_the_score(port, saved):
    some = rows(4)
    status, found = ask(port, "/reasons?top=7", some)
    assert status == 200
    totals = [sum(reason["share"] for reason in one["reasons"]) + one["rest"] for one in found]
    np.testing.assert_allclose(totals, saved.model.class_scores(matrix(some)).max(axis=1), rtol=1e-9)
    assert {reason["row"] for one in found for reason in one["reasons"]} <= set(saved.ids.texts)
    assert len(found[0]["reasons"]) == 7


def test_sets_are_those_of_the_library(port, saved):
    some = rows(20)
    _, found = ask(port, "/sets?coverage=0.7&per_class=true", some)
    expected = saved.model.predict_set(matrix(some), 0.7, per_class=True)
    assert [one["set"] for one in found] == [saved.model.classes_[row].tolist() for row in expected]


def test_health_names_the_model(port):
    status, found = ask(port, "/health")
    assert (status, found["status"], found["features"]) == (200, "ok", list(NAMES))


GOOD = {"length": 1.0, "width": 2}


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/predict", b'{"length": 1', 400, "cannot be read as JSON"),
        ("/predict", b"\xff\xfe", 400, "cannot be read as JSON"),
        ("/predict", b"[" * 90_000, 400, "cannot be read as JSON"),
        ("/predict", b'{"length": NaN, "width": 1}', 400, "holds NaN, which is not JSON"),
        ("/predict", 7, 400, "must be one row"),
        ("/predict", [GOOD, 7], 400, "must be one row"),
        ("/predict", [], 400, "has no rows"),
        ("/predict", [GOOD, {"length": 1.0, "wide": 2.0}], 400, "row 2 of the request has no column 'width'"),
        ("/predict", {"length": "long", "width": 1}, 400, "Column 'length' of the request holds text, 'long' in row 1"),
        ("/predict", {"length": [1], "width": 1}, 400, "a list or an object in column 'length'"),
        ("/predict", {"length": 10**400, "width": 1}, 400, "column 'length' of the request holds a number that is too"),
        ("/reasons?top=0", GOOD, 400, "top must be from 1 to"),
        ("/reasons?top=many", GOOD, 400, "top must be a number, got 'many'"),
        ("/sets?coverage=1", GOOD, 400, "coverage must be between 0 and 1"),
        ("/sets?per_class=perhaps", GOOD, 400, "per_class must be true or false"),
        ("/nowhere", GOOD, 404, "there is nothing at /nowhere"),
        ("/predict", None, 405, "GET is not for /predict"),
        ("/predict", b" " * (LIMIT + 1), 413, "more than 100,000 bytes"),
    ],
)
def test_errors_are_sentences(port, path, body, status, sentence):
    found = ask(port, path, body)
    assert found[0] == status
    assert sentence in found[1]["error"]
    assert "\n" not in found[1]["error"]
    assert ask(port, "/health")[0] == 200


def test_a_body_without_a_length_has_the_same_limit(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    parts = (b" " * 30_000 for _ in range(8))
    try:
        connection.request("POST", "/predict", parts, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    except OSError:  # the server has closed the connection while we were still sending
        return
    assert connection.getresponse().status == 413
    connection.close()


def test_many_clients_at_once_get_their_own_answers(port, saved):
    asked = [rows(3) for _ in range(50)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda some: ask(port, "/predict", some)[1], asked))
    for some, found in zip(asked, answers, strict=True):
        assert [one["species"] for one in found] == saved.model.predict(matrix(some)).tolist()


def test_a_client_that_hangs_up_does_not_hurt_others(port):
    gone = socket.create_connection(("127.0.0.1", port))
    gone.sendall(b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n[{")
    gone.close()
    assert ask(port, "/predict", GOOD)[0] == 200


def test_a_name_of_the_web_that_points_here_is_refused(port):
    assert ask(port, "/predict", GOOD, {"Host": "elsewhere.example"})[0] == 400


def test_the_page_and_the_description_load_nothing_from_elsewhere(port):
    status, text = ask(port, "/")
    assert status == 200
    assert "POST /predict" in text
    assert "//" not in text.replace("<!doctype html>", "")
    description = ask(port, "/openapi.json")[1]
    assert set(description["paths"]) == {"/predict", "/reasons", "/sets", "/health"}
    assert description["openapi"].startswith("3.1")


@pytest.mark.usefixtures("folder")
def test_an_address_that_is_taken_is_a_sentence(saved):
    Path("model.skops").write_bytes(b"no model")
    assert "is not a model" in refusal("serve", "model.skops")
    from coxfield.apps.cli import serve

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ValueError, match="give another --port"):
        serve._listening("127.0.0.1", taken.getsockname()[1])


def test_columns_of_json_are_those_of_a_csv():
    table = serving._table([{"a": 1, "b": "x"}, {"a": None, "b": 2}, {"a": 2.5, "b": True}], ("a", "b"))
    assert table.rows["a"].to_list() == [1.0, None, 2.5]
    assert table.rows["b"].to_list() == ["x", "2", "true"]
    assert serving._column("c", [1, None]).dtype == pl.Int64
