"""`features=spectral`: features from the edges alone, in the place of those of the data, kept in the user's cache."""

import pytest
import torch
from tests.data.cache_entries import scale_entry
from tests.graphs import small_data, table_folder
from tests.typed_graphs import small_hetero, typed_folder, with_tags

from legnn.config.data import DataSettings
from legnn.data.embedding import spectral
from legnn.datasets import load, prepare_folder
from legnn.errors import InputError

SPECTRAL = {"features": "spectral", "type_channels": 6}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "legnn" / "embeddings"


def test_features_are_those_of_the_edges_and_not_of_the_data(tmp_path):
    graph = small_data(feature_names=list("abcde"))
    data = load(graph, **SPECTRAL)
    assert torch.equal(data.x, spectral(graph.edge_index, 40, 6, seed=0))
    assert (data.feature_names, data.provenance.computed_features) == (None, ["nodes"])
    assert torch.equal(load(table_folder(tmp_path / "tables", graph), **SPECTRAL).x, data.x)
    assert len(data.notes) == 1
    assert data.notes[0].code == "features-computed"
    assert "no figure is comparable with published ones" in data.notes[0].text


def test_neither_labels_nor_given_features_matter():
    graph = small_data()
    other = small_data(x=torch.full((40, 2), torch.nan), y=graph.y.roll(3))
    assert torch.equal(load(graph, **SPECTRAL).x, load(other, training=False, **SPECTRAL).x)


@pytest.mark.parametrize("as_tables", [False, True])
def test_every_type_has_features_of_the_whole_graph(as_tables, tmp_path):
    graph = with_tags(small_hetero(author_channels=20))
    source = typed_folder(tmp_path / "tables", graph) if as_tables else graph
    plain, data = load(source), load(source, **SPECTRAL)
    assert torch.equal(data.x, spectral(plain.adjacency.edge_index, plain.num_nodes, 6, seed=0))
    assert data.provenance.computed_features == data.node_types.names == plain.node_types.names
    assert data.node_types.columns == [[*"012345"]] * 3
    assert not any(note.code == "features-reduced" or "come without" in note.text for note in data.notes)


def test_edges_between_classes_are_among_those_that_features_come_from():
    plain = load(small_data(), **SPECTRAL)
    added = load(small_data(), cross_label_edges=40, **SPECTRAL)
    assert torch.equal(added.x, spectral(added.adjacency.edge_index, 40, 6, seed=0))
    assert not torch.equal(added.x, plain.x)
    assert added.fingerprint() != plain.fingerprint()


def test_spectral_features_are_read_from_the_cache(cache):
    first = load(small_data(), **SPECTRAL)
    scaled = scale_entry(cache, 2.0)
    assert torch.equal(scaled, 2 * first.x)
    assert torch.equal(load(small_data(), **SPECTRAL).x, scaled)


def test_the_fingerprint_is_of_the_method_and_not_of_the_last_bit(cache):
    first = load(small_data(), **SPECTRAL)
    scale_entry(cache, 1 + 1e-7)
    again = load(small_data(), **SPECTRAL)
    assert not torch.equal(again.x, first.x)
    assert again.fingerprint() == first.fingerprint()
    assert load(small_data(), features="spectral", type_channels=7).fingerprint() != first.fingerprint()
    assert load(small_data()).fingerprint() != first.fingerprint()


def test_a_prepared_graph_keeps_them(tmp_path):
    made = prepare_folder(small_data(), tmp_path / "prepared", **SPECTRAL)
    data = load(tmp_path / "prepared", features="spectral")
    assert torch.equal(data.x, made.x)
    assert data.provenance.computed_features == ["nodes"]
    prepare_folder(small_data(), tmp_path / "given")
    with pytest.raises(InputError, match=r"features of .*given is 'given', as it was prepared, and not 'spectral'"):
        load(tmp_path / "given", features="spectral")


def test_a_text_column_and_features_of_the_graph_exclude_each_other():
    with pytest.raises(
        InputError, match=r"data\.text is 'abstract', and data\.features=spectral does not use the features of the data"
    ):
        DataSettings(text="abstract", features="spectral")


def test_an_edge_to_no_node_is_named():
    with pytest.raises(InputError, match="name a node that does not exist"):
        load(small_data(edge_index=torch.tensor([[0], [99]])), **SPECTRAL)


def test_arxiv_says_that_its_features_are_of_the_graph_alone(real_data):
    (note,) = load("ogbn-arxiv", features="spectral", type_channels=2).notes
    assert "2 features of every node were computed from the graph alone" in str(note)
