import numpy as np
import pytest

from coxfield.apps.experiments import learning
from coxfield.datasets import DatasetUnavailableError


def record(method, loss, error):
    return learning.Record("Synth", 250, method, loss, error)


def test_learning_lowers_the_log_loss_on_the_embedded_sets():
    methods = ("loo_error", *learning.LEARNED)
    for data in ("Synth", "Diabetes", "Banana"):
        plain, *learned = (np.mean(found.log_loss) for found in learning.run(data, partitions=3, methods=methods))
        assert max(learned) < plain, data


def test_verdict_compares_log_loss_and_error():
    plain = record("loo_error", (0.3, 0.5), (9.0, 11.0))
    assert (
        learning.against(record("pseudo_likelihood", (0.2, 0.4), (10.0, 12.0)), plain) == "log loss lower, error higher"
    )
    assert learning.against(record("pseudo_likelihood", (0.41,), (10.0,)), plain) == "log loss higher, error same"
    table = learning.render([plain, record("pseudo_likelihood", (0.2, 0.4), (10.0, 12.0))])
    assert list(table.columns[-1].cells) == ["", "log loss lower, error higher"]
    assert list(table.columns[3].cells) == ["0.400 ± 0.100", "0.300 ± 0.100"]


def test_gaussian_processes_are_spared_large_sets(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    monkeypatch.setattr(learning, "load", lambda data, seed: (X, y, X, y))
    monkeypatch.setattr(learning, "GPC_MOST", 39)
    assert list(learning.run("Synth", methods=("Gaussian process",))) == []
    monkeypatch.setattr(learning, "GPC_MOST", 40)
    (found,) = learning.run("Synth", methods=("Gaussian process",))
    assert found.train == 40


def test_peers_give_probabilities():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    for peer in (learning.gaussian_process(3), learning.support_vectors(3)):
        assert peer.fit(X, y).predict_proba(X).shape == (60, 2)


def test_a_set_that_is_not_there_costs_its_rows_and_a_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COXFIELD_DATA", str(tmp_path))
    monkeypatch.setenv("COXFIELD_CACHE", str(tmp_path))
    with pytest.raises(DatasetUnavailableError):
        learning.load("satimage")
    monkeypatch.setattr(learning, "METHODS", {"loo_error": learning.METHODS["loo_error"]})
    learning.main(["Synth", "satimage"])
    printed = capsys.readouterr().out
    assert "satimage is left out" in printed
    assert "Synth" in printed


def test_the_diagram_is_drawn(tmp_path):
    learning.main(["--plot", str(tmp_path / "a.png")])
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
