"""Presets: what they choose, and that what the user gave wins."""

import pytest
from tests.named import named

from legnn.config import FEW_LABELS, PRESETS, SETTINGS, GraphFacts, Settings
from legnn.config.candidates import CANDIDATES
from legnn.config.designs import DESIGNS
from legnn.config.portfolio import learned_portfolio

MANY = FEW_LABELS * 3


def facts(num_train: int = 15, **changes) -> GraphFacts:
    given = {"num_train": num_train, "num_classes": 3, "counts_features": False, "has_label_edges": False}
    return GraphFacts(**{**given, **changes})


OURS = [name for name in PRESETS if name not in DESIGNS]


def values(settings) -> dict:
    return settings.flat()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("num_train", [0, 15, MANY])
def test_nothing_is_left_open_for_few_labels_or_for_many(preset, num_train):
    chosen = Settings(preset=preset).resolve(facts(num_train))
    assert None not in values(chosen).values()
    assert chosen.preset == preset


def test_few_labels_get_a_smaller_model_than_many():
    simple = Settings(preset="simple")
    few, many = simple.resolve(facts(MANY - 1)), simple.resolve(facts(MANY))
    assert few.model.layers < many.model.layers
    assert few.model.hidden <= many.model.hidden
    assert few.train.weight_decay > many.train.weight_decay


FEW_EXPECTED = {
    "hidden": 64,
    "layers": 2,
    "residual": "none",
    "norm": "none",
    "dropout": 0.5,
    "input_dropout": 0.5,
    "label_edges": False,
    "label_at_input": True,
    "feature_scale": "standard",
    "epochs": 300,
    "patience": 100,
    "lr": 0.003,
    "weight_decay": 0.05,
    "alpha": 0.7,
    "fanout": "15,10",
    "normalize": "relation",
}
MANY_EXPECTED = {
    **FEW_EXPECTED,
    "hidden": 256,
    "layers": 3,
    "residual": "linear",
    "norm": "batch",
    "input_dropout": 0.1,
    "epochs": 500,
    "lr": 0.01,
    "weight_decay": 0.0,
    "alpha": 0.5,
    "fanout": "15,10,5",
}


@pytest.mark.parametrize(("num_train", "expected"), [(MANY - 1, FEW_EXPECTED), (MANY, MANY_EXPECTED)])
def test_the_simple_values_are_those_that_comparisons_were_made_with(num_train, expected):
    chosen = values(Settings(preset="simple").resolve(facts(num_train)))
    assert {name: chosen[name] for name in named(**expected)} == named(**expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_given_is_not_chosen(preset):
    given = {
        "hidden": 12,
        "layers": 1,
        "lr": 0.5,
        "epochs": 3,
        "dropout": 0.0,
        "residual": "linear",
        "feature_scale": "none",
        "normalize": "relation",
        "label_at_input": True,
    }
    settings = Settings(preset=preset).override(named(**given)).resolve(facts())
    chosen = values(settings)
    assert {name: chosen[name] for name in named(**given)} == named(**given)
    assert len(chosen["train.fanout"].split(",")) == max(settings.model.stages, 1), (
        "one number for the one layer, or a hop"
    )
    assert 12 % chosen["model.attention.heads"] == 0


def test_graphsage_has_a_linear_residual_of_its_own():
    for preset in OURS:
        settings = Settings(preset=preset).override(named(backbone="sage"))
        assert settings.resolve(facts(MANY)).model.residual in ("identity", "none")


def test_choosing_twice_changes_nothing():
    once = Settings().override(named(as_train=False)).resolve(facts())
    assert Settings(values=values(once)).resolve(facts(MANY)) == once


@pytest.mark.parametrize("num_types", [1, 3])
@pytest.mark.parametrize("num_train", [15, MANY])
def test_the_recommended_settings_are_the_candidate_that_the_portfolio_names(num_train, num_types):
    graph = facts(num_train, num_types=num_types)
    best = learned_portfolio().defaults(graph)[0]
    chosen, alone = Settings().resolve(graph), Settings(preset="simple", values=CANDIDATES[best].values)
    expected = alone.resolve(graph)
    assert (chosen.model, chosen.train, chosen.self_training) == (
        expected.model, expected.train, expected.self_training
    )  # fmt: skip
    assert repr(best) in Settings().explain(graph)


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat", "gatv2", "gin", "gcnii", "appnp", "dagnn"])
def test_a_backbone_that_is_given_gets_settings_that_fit_it(backbone):
    model = Settings().override(named(backbone=backbone)).resolve(facts()).model
    assert model.backbone == backbone
    if backbone in ("sage", "gcnii"):
        assert model.residual != "linear"


def test_word_counts_keep_their_zeros_and_other_features_are_standardized():
    assert Settings().resolve(facts()).model.feature_scale == "standard"
    assert Settings().resolve(facts(counts_features=True)).model.feature_scale == "entries"


def test_label_edges_are_used_where_the_data_come_with_them():
    with_edges = facts(has_label_edges=True)
    assert Settings().resolve(facts()).model.label_edges is False
    assert Settings().resolve(with_edges).model.label_edges is True
    assert Settings().override(named(labels="concat")).resolve(with_edges).model.label_edges is False


def test_the_paper_normalizes_jointly_and_shows_no_label_at_the_input():
    model = Settings(preset="paper").resolve(facts(has_label_edges=True)).model
    assert (model.normalize, model.label_at_input, model.layers) == ("joint", False, 3)
    assert (model.norm, model.residual, model.label_edges, model.feature_scale) == ("batch", "linear", False, "none")
    lifted = Settings(preset="paper").override(named(backbone="gin")).resolve(facts()).model
    assert lifted.normalize == "relation", "a lifted layer has no joint form"


def test_the_paper_shares_attention_vectors_has_no_biases_and_a_batch_norm_on_ogbn_arxiv_alone():
    model = Settings(preset="paper").override(named(backbone="gat")).resolve(facts()).model
    assert (model.published.attention_vectors, model.published.target_attention, model.bias) == ("shared", True, False)
    assert (model.hidden, model.attention.heads, model.published.shared_projection) == (540, 3, True)
    norms = {
        source: Settings(preset="paper").override(named(source=source)).resolve(facts()).model.norm
        for source in ("ogbn-arxiv", "elsewhere", "ogbn-mag", "oag-venue")
    }
    assert norms == {"ogbn-arxiv": "batch", "elsewhere": "batch", "ogbn-mag": "none", "oag-venue": "none"}


def appendix() -> list[tuple[str, str, str, float, float]]:
    """The first table of the appendix, row by row, as it is printed."""
    labels = {"Vanilla": "vanilla", "Concat": "concat", "Addition": "addition", "LEGNN": "enhanced"}
    rows = """
    gcn  Vanilla  .6 .001  .3 .001  .2 .001
    gcn  Concat   .4 .001  .3 .001  .2 .001
    gcn  Addition .6 .001  .3 .001  .2 .001
    gcn  LEGNN    .6 .002  .3 .001  .4 .001
    sage Vanilla  .6 .001  .3 .001  .3 .001
    sage Concat   .5 .001  .4 .001  .2 .001
    sage Addition .6 .002  .4 .001  .3 .001
    sage LEGNN    .5 .002  .3 .001  .4 .001
    gat  Vanilla  .6 .001  .4 .001  .2 .001
    gat  Concat   .6 .001  .4 .001  .2 .001
    gat  Addition .6 .002  .3 .001  .3 .001
    gat  LEGNN    .6 .002  .3 .001  .4 .001
    """
    found = []
    for backbone, method, *numbers in (line.split() for line in rows.strip().splitlines()):
        for k, source in enumerate(("ogbn-arxiv", "ogbn-mag", "oag-venue")):
            found.append((source, backbone, labels[method], float(numbers[2 * k]), float(numbers[2 * k + 1])))
    return found


def test_dropout_and_learning_rate_of_the_paper_are_those_of_the_appendix_for_every_method():
    for source, backbone, labels, dropout, lr in appendix():
        given = {"source": source, "backbone": backbone, "labels": labels}
        chosen = Settings(preset="paper").override(named(**given)).resolve(facts())
        assert (chosen.model.dropout, chosen.train.lr) == (dropout, lr), given


PUBLISHED = {
    "backbone": "gat",
    "labels": "enhanced",
    "layers": 3,
    "normalize": "relation",
    "node_weight": 2.0,
    "absent_label": "zero",
    "label_at_input": False,
    "attention_vectors": "separate",
    "residual": "linear",
    "label_norm": "batch",
    "bias": False,
    "drop_labels": True,
    "shared_projection": True,
    "init": "published",
    "feature_scale": "none",
    "weight_decay": 0.0,
    "alpha": 0.5,
    "selection": True,
    "precision": "fp32",
    "ties": "latest",
    "undirected": True,
    "remove_duplicates": False,
    "type_channels": 128,
}
ARXIV = {
    **PUBLISHED,
    "hidden": 540,
    "heads": 3,
    "target_attention": False,
    "symmetric_norm": True,
    "scaled_scores": True,
    "target_map": False,
    "norm": "batch",
    "input_dropout": 0.1,
    "layer_dropout": 0.0,
    "dropout": 0.6,
    "lr": 0.002,
    "epochs": 2000,
    "patience": 200,
    "cosine_steps": "epochs",
    "batch": "full",
    "delta": 10.0,
    "pseudo_label_threshold": 0.7,
    "pseudo_label_weight": 0.5,
    "self_loops": True,
}
MAG = {
    **PUBLISHED,
    "hidden": 512,
    "heads": 8,
    "target_attention": True,
    "symmetric_norm": False,
    "scaled_scores": False,
    "target_map": True,
    "norm": "none",
    "input_dropout": 0.0,
    "layer_dropout": 0.1,
    "dropout": 0.3,
    "lr": 0.001,
    "epochs": 500,
    "patience": 50,
    "cosine_steps": 50000,
    "batch": 370,
    "fanout": "15,10,5",
    "delta": 5.0,
    "pseudo_label_threshold": 0.6,
    "pseudo_label_weight": 0.1,
    "pseudo_steps": "separate",
    "self_loops": False,
    "missing_features": "published",
}


@pytest.mark.parametrize(("source", "expected"), [("ogbn-arxiv", ARXIV), ("ogbn-mag", MAG)])
def test_the_published_settings_are_those_of_the_code(source, expected):
    settings = Settings(preset="published").override(named(source=source, as_train=True))
    chosen, expected = values(settings.resolve(facts())), named(**expected)
    assert {name: chosen[name] for name in expected} == expected
    assert settings.data == settings.resolve(facts()).data, "the graph is loaded with the settings that are written"


def test_other_graphs_have_the_published_form_of_ogbn_arxiv_or_with_several_types_of_ogbn_mag():
    settings = Settings(preset="published").override(named(source="elsewhere"))
    plain, typed = (settings.resolve(facts(num_types=types)) for types in (1, 4))
    assert (plain.model.hidden, plain.train.batch, plain.model.published.symmetric_norm) == (540, "auto", True)
    assert (typed.model.hidden, typed.train.batch, typed.model.published.target_map) == (512, 370, True)
    assert typed.data.missing_features == "spectral", "the walks of ogbn-mag need its types"


def test_what_is_given_wins_over_a_preset_in_the_data_too():
    settings = Settings(preset="published").override(named(source="ogbn-mag", self_loops=True, remove_duplicates=True))
    assert (settings.data.self_loops, settings.data.remove_duplicates) == (True, True)
    assert settings.data.missing_features == "published"
    assert Settings().override(named(source="ogbn-mag")).data.missing_features == "spectral"


@pytest.mark.parametrize("preset", ["paper", "published"])
@pytest.mark.parametrize("hidden", [1, 8, 12, 64, 540])
def test_the_heads_divide_a_width_that_is_given(preset, hidden):
    for source in ("ogbn-arxiv", "ogbn-mag"):
        settings = Settings(preset=preset).override(named(hidden=hidden, source=source, backbone="gat"))
        assert hidden % settings.resolve(facts()).model.attention.heads == 0


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
    settings = Settings(preset="paper").override(named(source=source, backbone=backbone, as_train=True))
    chosen = values(settings.resolve(facts()))
    names = ("hidden", "epochs", "patience", "dropout", "lr", "alpha", "delta")
    names = [
        *named(**dict.fromkeys(names)),
        *(f"self_training.pseudo_label_{part}" for part in ("threshold", "weight")),
    ]
    assert tuple(chosen[name] for name in names) == expected


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_is_what_its_preset_trains_and_tries_its_own_settings_in_two_orders(name):
    design = DESIGNS[name]
    chosen = values(Settings(preset=name).resolve(facts()))
    assert {setting: chosen[setting] for setting in design.model if SETTINGS[setting].section != "data"} == {
        setting: value for setting, value in design.model.items() if SETTINGS[setting].section != "data"
    }
    few, many = (design.candidates(has_few_labels=is_few) for is_few in (True, False))
    assert sorted(map(str, few)) == sorted(map(str, many))
    assert len(few) in (0, 4), "as many as any other, or those that all share"
    for tried in few:
        Settings(values={**tried, **design.model})


def test_a_design_has_the_settings_of_its_authors_for_a_data_set():
    assert Settings(preset="gcnii").override(named(source="citeseer")).resolve(facts()).model.layers == 32
    assert Settings(preset="gcnii").override(named(source="cora")).resolve(facts()).model.layers == 64
    assert Settings(preset="rgcn").data.self_loops is False
