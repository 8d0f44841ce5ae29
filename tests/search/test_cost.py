"""The order of training under a short budget."""

from hypothesis import given
from hypothesis import strategies as st
from tests.named import named

from legnn.config.candidates import CANDIDATES
from legnn.search.cost import CPU, Size, order_by_cost, training_seconds

CORA, SQUIRREL = Size(2708, 13_264, 7), Size(2223, 96_219, 5)
ALL = {name: one.values for name, one in CANDIDATES.items()}


def test_with_time_enough_the_order_is_that_of_the_portfolio():
    assert order_by_cost(ALL, CORA, CPU, 1e7) == list(ALL)


def test_with_little_time_a_cheap_candidate_comes_before_one_that_would_take_all_of_it():
    names = ["legnn-gat-wide", "addition-gat-deep", "legnn-gat-deep", "legnn-gat-wide-as-train", "legnn-gcn-decay"]
    assert order_by_cost({name: ALL[name] for name in names}, SQUIRREL, CPU, 240)[0] == "legnn-gcn-decay"


@given(st.floats(1, 1e6), st.permutations(list(ALL)))
def test_every_candidate_keeps_a_place(seconds, names):
    assert sorted(order_by_cost({name: ALL[name] for name in names}, CORA, CPU, seconds)) == sorted(names)


def test_wider_deeper_and_attending_models_take_longer():
    def seconds(**values) -> float:
        return training_seconds(
            {"model.hidden": 64, "model.layers": 2, "model.backbone": "gcn", **named(**values)}, CORA, CPU
        )

    assert seconds(hidden=512) > seconds(hidden=128) > seconds()
    assert seconds(layers=5) > seconds()
    assert seconds(backbone="gat") > seconds()
    assert training_seconds(ALL["label-propagation"], CORA, CPU) < 0.1
