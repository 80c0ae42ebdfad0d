"""Options that contradict each other are misuse, with exit code 2."""

import pytest

from command_line import refusal
from coxfield.apps.cli.options import check_jobs


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
@pytest.mark.parametrize("jobs", [0, -2])
@pytest.mark.parametrize(
    "command",
    [
        ["fit", "train.csv", "-t", "species", "-o", "model.skops"],
        ["predict", "model.skops", "new.csv"],
        ["label", "new.csv", "-t", "species"],
        ["reproduce", "--list"],
    ],
    ids=lambda command: command[0],
)
def test_numbers_of_workers_are_positive_or_minus_one(command, jobs):
    sentence = " ".join(refusal(*command, "--jobs", jobs, code=2).split())
    assert f"{jobs} is no number of workers: give 1 or more, or -1 for one per processor" in sentence


@pytest.mark.parametrize("jobs", [None, -1, 1, 7])
def test_other_numbers_of_workers_are_taken(jobs):
    assert check_jobs(jobs) == jobs


@pytest.mark.usefixtures("folder")
def test_missing_options_and_contradictions_of_predict_are_misuse():
    assert "--target" in refusal("fit", "train.csv", "-o", "model.skops", code=2)
    assert "--output" in refusal("fit", "train.csv", "-t", "species", code=2)
    assert "contradict" in refusal("predict", "model.skops", "new.csv", "--id", "name", "--no-id", code=2)
