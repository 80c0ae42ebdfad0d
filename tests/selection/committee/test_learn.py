import numpy as np
import pytest

from coxfield.selection.committee.bank import Member
from coxfield.selection.committee.learn import VOICES, Opinion, learn_committee
from coxfield.selection.committee.sums import Given, MemberSums
from tolerances import assert_close

N, Q = 30, 3


def case(n_labelled, count=4, seed=0):
    """Members of which the first knows the truth."""
    rng = np.random.default_rng(seed)
    truth = np.arange(N) % Q
    rows = np.arange(n_labelled)
    given = Given(rows, truth[rows], Q)
    members = [Member(0, 2.0 * 2**m, 1.0, False) for m in range(count)]
    sums = []
    for m in range(count):
        whole = rng.normal(size=(N, Q)) + (3 * np.eye(Q)[truth] if m == 0 else 0)
        sums.append(MemberSums(whole, whole[rows], rng.normal(size=(2, Q))))
    return truth, given, members, sums


def opinion(truth, given, sure):
    p = np.full((N, Q), (1 - sure) / 2)
    p[np.arange(N), truth] = sure
    return Opinion(p, p[given.rows])


@pytest.mark.parametrize("n_labelled", [3, 6, 24])
@pytest.mark.parametrize("third", [False, True])
def test_probabilities_and_shares_add_up_to_one(n_labelled, third):
    truth, given, members, sums = case(n_labelled)
    alone = opinion(truth, given, 0.9) if third else None
    committee = learn_committee(members, sums, given, np.zeros(Q), alone)
    p = committee.probabilities(committee.sums, alone.whole if third else None)
    assert_close(p.sum(axis=1), 1.0, terms=Q)
    assert_close(committee.shares.sum(), 1.0, terms=len(members))
    assert_close(committee.loudness.sum(), 1.0, terms=3)
    assert len(committee.members) == len(committee.sums) == len(committee.directions) == len(committee.average.weights)


def test_one_label_per_class_leaves_only_the_average():
    _, given, members, sums = case(3)
    committee = learn_committee(members, sums, given, np.zeros(Q))
    assert committee.blend is None
    assert committee.loudness.tolist() == [1, 0, 0]


def test_many_labels_find_the_member_that_knows():
    truth, given, members, sums = case(24)
    committee = learn_committee(members, sums, given, np.zeros(Q))
    assert committee.members[int(committee.shares.argmax())] is members[0]
    p = committee.probabilities(committee.sums)
    assert (p.argmax(axis=1) == truth).mean() > 0.8


def test_a_voice_that_knows_more_is_louder():
    truth, given, members, sums = case(24)
    loud, quiet = (
        learn_committee(members, sums, given, np.zeros(Q), opinion(truth, given, sure)).loudness[2]
        for sure in (0.99, 0.05)
    )
    assert VOICES[2] == "labelled points alone"
    assert loud > 1 / 3 > quiet


def test_the_mean_of_a_class_raises_its_probability():
    _, given, members, sums = case(6)
    plain, raised = (learn_committee(members, sums, given, mean) for mean in (np.zeros(Q), np.array([0.0, 2.0, 0.0])))
    assert (raised.probabilities(raised.sums)[:, 1] > plain.probabilities(plain.sums)[:, 1]).mean() > 0.9
