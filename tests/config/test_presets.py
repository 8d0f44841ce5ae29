"""Presets: what they choose, and that what the user gave wins."""

from dataclasses import asdict

import pytest

from legnn.config import FEW_LABELS, PRESETS, SETTINGS, GraphFacts, Settings

MANY = FEW_LABELS * 3


def facts(num_train: int = 15, **changes) -> GraphFacts:
    given = {"num_train": num_train, "num_classes": 3, "counts_features": False, "has_label_edges": False}
    return GraphFacts(**{**given, **changes})


def values(settings) -> dict:
    return {name: getattr(getattr(settings, one.section), name) for name, one in SETTINGS.items()}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("num_train", [0, 15, MANY])
def test_nothing_is_left_open_for_few_labels_or_for_many(preset, num_train):
    chosen = Settings(preset=preset).resolve(facts(num_train))
    assert None not in values(chosen).values()
    assert chosen.preset == preset


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_chooses_what_the_help_calls_chosen(preset):
    chosen = PRESETS[preset](facts(), {})
    assert {name for name, one in SETTINGS.items() if one.chosen and one.section != "data"} <= set(chosen)


def test_few_labels_get_a_smaller_model_than_many():
    few, many = Settings().resolve(facts(MANY - 1)), Settings().resolve(facts(MANY))
    assert few.model.layers < many.model.layers
    assert few.model.hidden <= many.model.hidden
    assert few.train.weight_decay > many.train.weight_decay


FEW_EXPECTED = {
    "hidden": 64, "layers": 2, "residual": "none", "norm": "none", "dropout": 0.5, "input_dropout": 0.5,
    "label_edges": False, "label_at_input": True, "scale": "standard", "epochs": 300, "patience": 100, "lr": 0.003,
    "weight_decay": 0.05, "alpha": 0.7, "fanout": "15,10", "normalize": "relation",
}  # fmt: skip
MANY_EXPECTED = {
    **FEW_EXPECTED, "hidden": 256, "layers": 3, "residual": "linear", "norm": "batch", "input_dropout": 0.1,
    "epochs": 500, "lr": 0.01, "weight_decay": 0.0, "alpha": 0.5, "fanout": "15,10,5",
}  # fmt: skip


@pytest.mark.parametrize(("num_train", "expected"), [(MANY - 1, FEW_EXPECTED), (MANY, MANY_EXPECTED)])
def test_the_recommended_values_are_those_that_were_measured(num_train, expected):
    chosen = values(Settings().resolve(facts(num_train)))
    assert {name: chosen[name] for name in expected} == expected


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_given_is_not_chosen(preset):
    given = {
        "hidden": 12,
        "layers": 1,
        "lr": 0.5,
        "epochs": 3,
        "dropout": 0.0,
        "residual": "linear",
        "scale": "none",
        "normalize": "relation",
        "label_at_input": True,
    }
    chosen = values(Settings(preset=preset).override(**given).resolve(facts()))
    assert {name: chosen[name] for name in given} == given
    assert chosen["fanout"] == "15", "one number for the one layer"


def test_graphsage_has_a_linear_residual_of_its_own():
    for preset in PRESETS:
        settings = Settings(preset=preset).override(backbone="sage")
        assert settings.resolve(facts(MANY)).model.residual == "identity"


def test_choosing_twice_changes_nothing():
    once = Settings().resolve(facts())
    given = {name: value for name, value in values(once).items() if SETTINGS[name].section != "self_training"}
    assert Settings(given=given).resolve(facts(MANY)) == once


def test_word_counts_keep_their_zeros_and_other_features_are_standardized():
    assert Settings().resolve(facts()).model.scale == "standard"
    assert Settings().resolve(facts(counts_features=True)).model.scale == "entries"


def test_label_edges_are_used_where_the_data_come_with_them():
    with_edges = facts(has_label_edges=True)
    assert Settings().resolve(facts()).model.label_edges is False
    assert Settings().resolve(with_edges).model.label_edges is True
    assert Settings().override(labels="concat").resolve(with_edges).model.label_edges is False


def test_the_paper_normalizes_jointly_and_shows_no_label_at_the_input():
    model = Settings(preset="paper").resolve(facts(has_label_edges=True)).model
    assert (model.normalize, model.label_at_input, model.layers) == ("joint", False, 3)
    assert (model.norm, model.residual, model.label_edges, model.scale) == ("batch", "linear", False, "none")
    lifted = Settings(preset="paper").override(backbone="gin").resolve(facts()).model
    assert lifted.normalize == "relation", "a lifted layer has no joint form"


@pytest.mark.parametrize(
    ("source", "backbone", "expected"),
    [
        ("ogbn-arxiv", "gcn", (540, 2000, 200, 0.6, 0.002, 0.5, 10.0, 0.7, 0.5)),
        ("ogbn-arxiv", "sage", (540, 2000, 200, 0.5, 0.002, 0.5, 10.0, 0.7, 0.5)),
        ("ogbn-mag", "sage", (512, 500, 50, 0.3, 0.001, 0.5, 5.0, 0.6, 0.1)),
        ("oag-venue", "gat", (256, 1000, 100, 0.4, 0.001, 0.5, 30.0, 0.9, 0.05)),
        ("elsewhere", "gat", (540, 2000, 200, 0.6, 0.002, 0.5, 10.0, 0.7, 0.5)),
    ],
)
def test_the_settings_of_the_paper_are_those_of_its_tables(source, backbone, expected):
    settings = Settings(preset="paper").override(source=source, backbone=backbone, as_train=True)
    chosen = values(settings.resolve(facts()))
    names = ("hidden", "epochs", "patience", "dropout", "lr", "alpha", "delta", "threshold", "weight")
    assert tuple(chosen[name] for name in names) == expected


def test_a_preset_does_not_set_parameters_of_as_train_while_it_is_off():
    settings = Settings(preset="paper").override(source="ogbn-mag").resolve(facts())
    assert asdict(settings.self_training) == asdict(Settings().resolve(facts()).self_training)
