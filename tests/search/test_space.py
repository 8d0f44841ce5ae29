import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legnn.config import SETTINGS, GraphFacts
from legnn.config.candidates import CANDIDATES
from legnn.search.space import READ_BY, SPACE, changed, complete, is_allowed, neighbors

names = st.sampled_from(sorted(CANDIDATES))
seeds = st.integers(0, 1000)
FACTS = GraphFacts(num_train=140, num_classes=7, counts_features=True, has_label_edges=False)


@settings(max_examples=80, deadline=None)
@given(names, seeds, st.sampled_from([FACTS, None]))
def test_a_neighbor_can_be_trained_and_differs_in_at_most_two_settings(name, seed, facts):
    values = CANDIDATES[name].values
    given_facts = {} if facts is None else {"facts": facts}
    origin = complete(values, **given_facts)
    for one in neighbors(values, random.Random(seed), 3, **given_facts):
        now = complete(one, **given_facts)
        assert now != origin
        assert is_allowed(now)
        assert len(changed(origin, now)) in ((0,) if now["train.seed"] != origin["train.seed"] else (1, 2))


@settings(max_examples=40, deadline=None)
@given(names, seeds)
def test_neighbors_of_neighbors_can_be_trained(name, seed):
    rng = random.Random(seed)
    values = dict(CANDIDATES[name].values)
    for _ in range(6):
        (values,) = neighbors(values, rng, 1)
        assert is_allowed(complete(values))


@settings(max_examples=40, deadline=None)
@given(names, seeds)
def test_a_numeric_setting_moves_to_the_value_next_to_it(name, seed):
    origin = complete(CANDIDATES[name].values)
    for one in neighbors(CANDIDATES[name].values, random.Random(seed), 4):
        now = complete(one)
        for moved in changed(origin, now):
            tunable = SPACE[moved]
            if tunable.is_ordered:
                places = [tunable.values.index(tunable.nearest(settings[moved])) for settings in (origin, now)]
                assert abs(places[0] - places[1]) <= 1


@settings(max_examples=40, deadline=None)
@given(names, seeds, st.sets(st.sampled_from(sorted([*SPACE, "train.seed"])), max_size=8))
def test_a_fixed_setting_is_never_varied(name, seed, fixed):
    origin = complete(CANDIDATES[name].values)
    for one in neighbors(CANDIDATES[name].values, random.Random(seed), 4, fixed=fixed):
        now = complete(one)
        assert all(now[n] == origin[n] for n in fixed)


def test_neighbors_are_different_from_each_other_and_the_same_for_the_same_seed():
    values = CANDIDATES["legnn-gcn-wide"].values
    first = neighbors(values, random.Random(3), 20)
    assert len(first) == 20
    assert len({str(sorted(one.items())) for one in first}) == 20
    assert first == neighbors(values, random.Random(3), 20)


def test_settings_with_few_neighbors_have_as_many_as_there_are():
    few = neighbors(CANDIDATES["label-propagation-far"].values, random.Random(0), 10)
    # one step in either or both: steps 20 or 100, weight 0.9
    assert len(few) == 5


@pytest.mark.parametrize("name", ["gcn-wide", "legnn-gcn-wide-as-train"])
def test_the_settings_of_a_run_have_neighbors_and_the_fan_out_follows_the_layers(name):
    for one in neighbors(complete(CANDIDATES[name].values), random.Random(0), 40):
        now = complete(one)
        is_propagated = now["model.backbone"] in ("appnp", "dagnn")
        stages = now["model.appnp.hops"] if is_propagated else now["model.layers"]
        assert len(now["train.fanout"].split(",")) == stages


@pytest.mark.parametrize("name", SPACE)
def test_every_value_is_one_that_the_setting_takes(name):
    assert [SETTINGS[name].check(value) for value in SPACE[name].values] == list(SPACE[name].values)


@pytest.mark.parametrize(
    ("name", "values", "matters"),
    [
        ("train.alpha", {"model.labels": "vanilla"}, False),
        ("train.alpha", {"model.labels": "concat"}, True),
        ("train.alpha", {"model.architecture": "unimp"}, True),
        ("model.attention.heads", {"model.backbone": "gcn"}, False),
        ("model.attention.heads", {"model.backbone": "gat"}, True),
        ("model.appnp.hops", {"model.backbone": "gcnii"}, False),
        ("model.appnp.hops", {"model.backbone": "dagnn"}, True),
        ("model.gcnii.identity_decay", {"model.backbone": "gcnii"}, True),
        ("model.normalize", {"model.backbone": "gat", "model.labels": "addition"}, False),
        ("model.normalize", {"model.backbone": "rgcn", "model.labels": "enhanced"}, False),
        ("self_training.pseudo_label_threshold", {}, False),
        ("self_training.pseudo_label_threshold", {"self_training.as_train": True}, True),
        ("model.hidden", {"model.architecture": "mlp", "model.layers": 1}, False),
        ("train.lr", {"model.architecture": "boosted_trees"}, False),
        ("model.backbone", {"model.backbone": "rgcn"}, False),
    ],
)
def test_a_setting_matters_where_the_model_reads_it(name, values, matters):
    assert SPACE[name].applies(complete(values)) is matters


def test_every_setting_of_an_architecture_is_in_the_space():
    assert {name for read in READ_BY.values() for name in read} == set(SPACE)
