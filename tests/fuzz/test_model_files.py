"""Model files that are damaged or changed: the same few of them every time."""

from fuzz.model_files import FAILED, OTHER, REFUSED, SAME, run


def test_damaged_model_files_are_refused_in_one_sentence_or_predict_as_before():
    told = []
    report = run(150, seed=1, every=0, show=told.append)
    assert report.counts[FAILED] == 0, "\n".join(told)
    assert min(report.counts[kind] for kind in (SAME, REFUSED, OTHER)) > 0
