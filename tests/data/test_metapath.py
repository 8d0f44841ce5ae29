"""Random walks along a meta-path: where they go, and the features that are learned of them."""

from itertools import pairwise

import pytest
import torch
from tests.data.cache_entries import scale_entry
from tests.typed_graphs import CHAIN, small_hetero, small_mag, typed_edges

from legnn.data.embedding import PUBLISHED_TRIP, check_published, trips
from legnn.data.node_types import NodeTypes
from legnn.data.skip_gram import embed_walks
from legnn.datasets import load
from legnn.errors import InputError


def round_trips(typed: tuple[NodeTypes, torch.Tensor], missing: list[str]) -> list[list[str]]:
    types, edge_index = typed
    return trips(types, types.edges(edge_index), missing)


def test_the_meta_path_visits_every_type_without_features_and_comes_back():
    typed = typed_edges(CHAIN, author=2, paper=3, field=1, institute=1)
    assert round_trips(typed, ["author", "field", "institute"]) == [
        ["paper", "author", "paper"],
        ["paper", "field", "paper"],
        ["paper", "author", "institute", "author", "paper"],
    ]


def test_walks_from_the_one_type_without_features_go_anywhere_and_back():
    typed = typed_edges({("paper", "has", "field"): [(0, 0)]}, paper=1, field=1)
    assert round_trips(typed, ["paper"]) == [["paper", "field", "paper"]]
    typed = typed_edges({("paper", "cites", "paper"): [(0, 1)]}, paper=2)
    assert set(round_trips(typed, ["paper"])[0]) == {"paper"}


def test_a_type_that_no_walk_reaches_is_named():
    typed = typed_edges({("tag", "like", "tag"): [(0, 1)]}, paper=2, tag=2)
    with pytest.raises(InputError, match=r"no relation joins the type 'tag' to 'paper'.*choose .* spectral"):
        round_trips(typed, ["tag"])
    with pytest.raises(InputError, match="'paper' has neither features nor edges"):
        round_trips(typed_edges({}, paper=2), ["paper"])


def test_walk_features_are_seeded_and_zero_where_no_walk_goes():
    types, edge_index = typed_edges(CHAIN, author=2, paper=3, field=2, institute=1)
    edges, path = types.edges(edge_index), [["paper", "field", "paper"]]
    state = torch.random.get_rng_state()
    x = embed_walks(types, edges, path, 4, seed=0)
    assert torch.equal(torch.random.get_rng_state(), state), "the caller's random state is left as it was"
    assert x.shape == (8, 4)
    assert torch.equal(x, embed_walks(types, edges, path, 4, seed=0))
    assert not torch.equal(x, embed_walks(types, edges, path, 4, seed=1))
    assert x[5].any()
    assert not x[6].any(), "field 1 has no edges"
    assert not x[:2].any(), "no walk visits authors"


def test_the_published_meta_path_goes_round_from_authors_along_relations_of_the_graph():
    check_published(small_mag().edge_types)
    kinds = ["author", "paper", "field_of_study", "paper", "paper", "author", "institution", "author", "paper", "paper"]
    assert [*kinds, "author"] == PUBLISHED_TRIP
    ends = {ends for source, _, target in small_mag().edge_types for ends in ((source, target), (target, source))}
    assert set(pairwise(PUBLISHED_TRIP)) <= ends


def test_the_published_features_are_for_all_types_but_papers(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = load(small_mag(), missing_features="published", type_channels=6)
    assert data.provenance.computed_features == ["author", "field_of_study", "institution"]
    papers = data.node_types.target_mask
    assert torch.equal(data.x[papers, :4], small_mag()["paper"].x)
    assert not data.x[papers, 4:].any()
    assert data.x[~papers].any(1).all()
    assert "features-computed" in [note.code for note in data.notes]
    scale_entry(tmp_path / "legnn" / "embeddings", 2.0)
    again = load(small_mag(), missing_features="published", type_channels=6).x
    assert torch.equal(again[~papers], 2 * data.x[~papers]), "they are read from the cache"


def test_the_published_walks_are_refused_for_other_relations(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"walks along the relations of ogbn-mag .* and this graph has other ones"):
        load(small_hetero(author_channels=None), missing_features="published")
