"""Features that are computed from the edges: what they are, that they are kept, and that a bad cache does no harm."""

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.cache_entries import scale_entry
from tests.typed_graphs import CHAIN, small_hetero, typed_edges, with_tags

from legnn.data.cache import digest_of, read_tensor, write_tensor
from legnn.data.embedding import embed, spectral
from legnn.datasets import load


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "legnn" / "embeddings"


def two_groups(size: int = 30) -> torch.Tensor:
    """Two groups of nodes with many edges within and a few between."""
    generator = torch.Generator().manual_seed(0)
    within = torch.randint(0, size, (2, 8 * size), generator=generator)
    few = torch.randint(0, size, (2, 4), generator=generator) + torch.tensor([[0], [size]])
    return torch.cat([within, within + size, few], 1)


def test_spectral_features_span_the_leading_eigenvectors():
    edge_index, M, k = two_groups(), 61, 2  # node 60 has no edges
    x = spectral(edge_index, M, k, seed=0)
    A = torch.zeros(M, M, dtype=torch.float64)
    A[edge_index[0], edge_index[1]] = 1
    A = ((A + A.T) > 0).double().fill_diagonal_(0)
    scale = (A.sum(1) + A.sum(1).mean()).rsqrt()
    vectors = torch.linalg.eigh(scale[:, None] * A * scale)[1].flip(1)[:, :k]
    expected = torch.nn.functional.normalize(vectors[:60])
    # the eigenvectors are known up to their signs, the products of rows are not
    torch.testing.assert_close((x @ x.T)[:60, :60].double(), expected @ expected.T, atol=0.05, rtol=0)
    assert not x[60].any()


def test_spectral_features_tell_groups_apart():
    x = spectral(two_groups(), 60, 2, seed=0)
    alike = x @ x.T
    assert alike[:30, :30].mean() > 0.5 > alike[:30, 30:].mean()


@given(st.integers(1, 12), st.integers(1, 20), st.data())
@settings(max_examples=25, deadline=None)
def test_spectral_rows_have_length_one_or_no_edge(nodes, channels, data):
    node = st.integers(0, nodes - 1)
    edges = data.draw(st.lists(st.tuples(node, node), max_size=20))
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    x = spectral(edge_index, nodes, channels, seed=0)
    assert x.shape == (nodes, channels)
    assert torch.isfinite(x).all()
    has_edge = [any(i in pair and pair[0] != pair[1] for pair in edges) for i in range(nodes)]
    lengths = x.norm(dim=1)
    assert (lengths[~torch.tensor(has_edge)] == 0).all()
    # fewer columns than nodes may miss a node's component altogether
    if channels >= nodes:
        torch.testing.assert_close(lengths[torch.tensor(has_edge)], torch.ones(sum(has_edge)))


@pytest.mark.parametrize("method", ["spectral", "metapath2vec"])
def test_types_without_features_get_some_and_a_note_says_so(method):
    data = load(with_tags(small_hetero(author_channels=None)), missing_features=method, type_channels=7)
    assert data.provenance.computed_features == ["author", "tag"]
    assert data.x.shape[1] == 7
    assert data.x[~data.node_types.target_mask].abs().sum(1).gt(0).all()
    assert not data.x[data.node_types.target_mask, 5:].any()
    (note,) = data.notes
    assert str(note) == (f"Nodes of author and tag come without features: 7 were computed from the graph ({method}).")


def test_labels_do_not_matter_for_computed_features():
    graph = with_tags(small_hetero())
    before = load(graph).x
    graph["paper"].y = graph["paper"].y.flip(0).clamp(min=0)
    assert torch.equal(load(graph).x, before)


def test_computed_features_are_read_from_the_cache(cache):
    graph = with_tags(small_hetero())
    first = load(graph)
    tags = first.node_types.node_type == first.node_types.names.index("tag")
    scaled = scale_entry(cache, 2.0)
    again = load(graph).x
    assert torch.equal(again[tags], 2 * first.x[tags])
    assert torch.equal(again[tags], scaled)
    assert torch.equal(again[~tags], first.x[~tags])


@pytest.mark.parametrize(
    "options", [{"type_channels": 9}, {"missing_features": "metapath2vec"}, {"edge": True}], ids=str
)
def test_another_graph_or_method_is_another_entry(cache, options):
    graph = with_tags(small_hetero())
    load(graph)
    if options.pop("edge", False):
        graph["paper", "tagged", "tag"].edge_index[1, 0] += 1
    load(graph, **options)
    assert len(list(cache.iterdir())) == 2


def test_a_damaged_entry_is_computed_again(cache):
    graph = with_tags(small_hetero())
    first = load(graph).x
    (entry,) = cache.iterdir()
    entry.write_bytes(entry.read_bytes()[:50])
    assert torch.equal(load(graph).x, first)
    assert torch.equal(load(graph).x, first)


def test_an_entry_that_was_changed_or_has_another_key_is_not_read(cache):
    a, b = digest_of(["a"]), digest_of(["b"])
    write_tensor(a, torch.ones(3))
    (entry,) = cache.iterdir()
    content = bytearray(entry.read_bytes())
    content[-1] ^= 1
    entry.write_bytes(bytes(content))
    assert read_tensor(a) is None
    write_tensor(a, torch.ones(3))
    shutil.copy(entry, entry.with_name(f"{b}.safetensors"))
    assert read_tensor(b) is None


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load(with_tags(small_hetero())).provenance.computed_features == ["tag"]


@given(st.lists(st.one_of(st.text(max_size=3), st.lists(st.integers(0, 3), max_size=3)), max_size=4), st.data())
@settings(max_examples=20, deadline=None)
def test_the_key_is_the_same_only_for_the_same_parts(parts, data):
    other = data.draw(st.lists(st.one_of(st.text(max_size=3), st.lists(st.integers(0, 3), max_size=3)), max_size=4))

    def key(one):
        return digest_of([part if isinstance(part, str) else torch.tensor(part, dtype=torch.int64) for part in one])

    assert (key(parts) == key(other)) == (parts == other)


def test_a_tensor_is_read_as_it_was_written(cache):
    value = torch.arange(6).view(2, 3).T
    assert read_tensor("a") is None
    assert torch.equal(write_tensor("a", value), value)
    assert torch.equal(read_tensor("a"), value)


def test_real_types_without_features_get_some_in_seconds(real_data):
    data = load("debian-hetero")
    assert data.node_types.names == ["package", "source", "maintainer", "tag"]
    assert torch.bincount(data.node_type).sum() == 100451
    assert data.provenance.computed_features == ["source", "maintainer", "tag"]
    assert np.isfinite(data.x.numpy()).all()
    lengths = data.x[data.node_type > 0].norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_embed_gives_each_type_its_own_rows():
    types, edge_index = typed_edges(CHAIN, author=2, paper=3, field=1, institute=1)
    whole = spectral(edge_index, 7, 3, seed=0)
    rows = embed(edge_index, 7, 3, "spectral", types, ["author", "institute"])
    assert torch.equal(rows, whole[[0, 1, 6]])
