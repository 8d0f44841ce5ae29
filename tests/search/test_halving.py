"""Successive halving: what is paused, and what never is."""

from hypothesis import given
from hypothesis import strategies as st

from legnn.search.halving import LEAST_FINISHED, RUNGS, is_hopeless

VAL = 500
ACCURACY = st.floats(0, 1)


def flat(value: float, epochs: int = 100) -> list[float]:
    return [value] * epochs


GOOD = {name: flat(0.9) for name in "abc"}


def test_a_hopeless_candidate_is_paused_at_a_rung_and_not_sooner():
    assert is_hopeless(flat(0.2, RUNGS[0]), GOOD, [], VAL)
    assert not is_hopeless(flat(0.2, RUNGS[0] - 1), GOOD, [], VAL)


def test_few_finished_candidates_say_too_little():
    few = dict(list(GOOD.items())[: LEAST_FINISHED - 1])
    assert not is_hopeless(flat(0.2), few, [], VAL)
    assert not is_hopeless(flat(0.2), {**few, "without epochs": []}, [], VAL)


def test_one_that_may_gain_as_much_as_another_did_goes_on():
    late = [0.1] * RUNGS[0] + [0.9]
    assert not is_hopeless(flat(0.2, RUNGS[0]), {**GOOD, "late": late}, [], VAL)


def test_one_within_a_standard_error_of_the_leader_goes_on():
    assert not is_hopeless(flat(0.89, RUNGS[0]), GOOD, [], VAL)
    assert is_hopeless(flat(0.89, RUNGS[0]), GOOD, [], 100 * VAL)


def test_candidates_that_never_reach_the_rung_tell_of_no_gain():
    short = {name: flat(0.9, 1) for name in "abc"}
    assert not is_hopeless(flat(0.2), short, [flat(0.9)], VAL)


@given(
    mine=ACCURACY,
    finished=st.lists(ACCURACY, min_size=3, max_size=8),
    others=st.lists(ACCURACY, max_size=8),
    rung=st.sampled_from(RUNGS),
)
def test_a_candidate_in_the_better_half_is_never_paused(mine, finished, others, rung):
    all_others = [*finished, *others]
    better = sum(other > mine for other in all_others)
    curves = {str(k): flat(value, rung) for k, value in enumerate(finished)}
    found = is_hopeless(flat(mine, rung), curves, [flat(value, rung) for value in others], VAL)
    # itself among all: the one in the middle belongs to the better half
    if better <= len(all_others) / 2:
        assert not found
