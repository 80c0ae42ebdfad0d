import numpy as np

from coxfield.experiments import circles, demo, helix


def test_two_rings_are_recovered_but_for_one_point_as_in_the_paper():
    record = circles.run(2)
    assert len(record.errors) == 1
    assert record.certified == 1


def test_three_rings_are_recovered_from_five_labels_each():
    record = circles.run(3, noise=0.45, random_state=1)
    assert np.bincount(record.y[record.y >= 0]).tolist() == [5, 5, 5]
    assert len(record.errors) <= 0.02 * (record.y < 0).sum()
    assert record.gap < 1e-9


def small_helix():
    X, truth = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    return helix.Record(X, truth, np.where(np.arange(20) < 6, truth, -1), truth, 1 - truth)


def test_a_helix_is_labelled_with_and_without_the_unlabelled_points():
    record = helix.run(labels_per_strand=100, length_scales=[0.14])
    assert np.bincount(record.y[record.y >= 0]).tolist() == [100, 100]
    assert np.mean(record.semi_supervised != record.truth) < np.mean(record.supervised != record.truth)


def test_demo_prints_our_errors_beside_the_papers_and_draws(tmp_path, capsys, monkeypatch):
    record = demo.supervised.Record("Synth", 250, 1000, (8.7,), (0.1,), 9.1)
    monkeypatch.setattr(helix, "run", small_helix)
    monkeypatch.setattr(demo.supervised, "run", lambda: [record])
    demo.main(["--output", str(tmp_path / "new")])
    printed = capsys.readouterr().out
    assert "8.70" in printed
    assert "9.1" in printed
    for name in ("concentric_circles.png", "double_helix.png", "lgcp_samples.png"):
        assert (tmp_path / "new" / name).read_bytes().startswith(b"\x89PNG")
