"""Options that contradict each other are misuse, with exit code 2."""

import pytest

from command_line import refusal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--length-scale", "0"], "must be positive and finite, got 0"),
        (["--length-scale", "nan"], "must be positive and finite, got nan"),
        (["--id", "species"], "must be different columns"),
        (["--feature", "length", "--drop", "notes"], "give only one of the two"),
        (["--selection", "best"], "'best' is not one of"),
    ],
)
def test_contradictory_options_are_misuse(folder, options, message):
    sentence = refusal("fit", "train.csv", "-t", "species", "-o", "model.skops", *options, code=2)
    assert message in " ".join(sentence.split())
    assert not (folder / "model.skops").exists()


@pytest.mark.usefixtures("folder")
def test_missing_options_and_contradictions_of_predict_are_misuse():
    assert "--target" in refusal("fit", "train.csv", "-o", "model.skops", code=2)
    assert "--output" in refusal("fit", "train.csv", "-t", "species", code=2)
    assert "contradict" in refusal("predict", "model.skops", "new.csv", "--id", "name", "--no-id", code=2)
