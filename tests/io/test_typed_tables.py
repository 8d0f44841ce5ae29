"""A folder with a table for each node type and each relation."""

import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from tests.typed_graphs import small_hetero, typed_folder, with_tags

from legnn.data import statistics
from legnn.datasets import load
from legnn.errors import InputError
from legnn.notes import Note


@pytest.fixture
def folder(tmp_path):
    return typed_folder(tmp_path / "tables", with_tags(small_hetero()))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_give_the_graph_they_were_written_from(tmp_path, suffix):
    graph = with_tags(small_hetero())
    data = load(typed_folder(tmp_path / "tables", graph, suffix=suffix))
    expected = load(graph)
    assert data.node_types.names == expected.node_types.names == ["author", "paper", "tag"]
    assert torch.equal(data.node_type, expected.node_type)
    torch.testing.assert_close(data.x, expected.x)
    assert torch.equal(data.y, expected.y)
    assert torch.equal(data.train_mask, expected.train_mask)
    assert torch.equal(data.adjacency.edge_index, expected.adjacency.edge_index)
    assert data.class_names == ["class 0", "class 1", "class 2"]
    assert data.node_id[data.node_types.target_mask.numpy()].tolist() == [f"p{i}" for i in range(40)]
    assert data.node_types.columns[:2] == [["f0", "f1", "f2"], ["f0", "f1", "f2", "f3", "f4"]]


def test_features_may_lie_beside_the_table(folder):
    features = np.random.default_rng(0).random((40, 9))
    np.save(folder / "nodes" / "paper.npy", features)
    data = load(folder)
    np.testing.assert_allclose(data.x[data.node_types.target_mask, :9].numpy(), features.astype(np.float32))
    text = "Left aside in paper.csv: f0, f1, f2, f3, f4; paper.npy is the features."
    assert Note("columns-ignored", text) in data.notes


def test_a_type_without_a_table_is_made_of_the_ids_its_edges_name(folder):
    edges = pd.read_csv(folder / "edges" / "paper__tagged__tag.csv")
    edges.loc[0, "target"] = "a new one"
    edges.to_csv(folder / "edges" / "paper__tagged__tag.csv", index=False)
    data = load(folder)
    assert data.node_id[data.node_type.numpy() == 2].tolist() == ["a new one", *(f"t{i}" for i in range(6))]


def test_numbers_as_ids_stay_numbers(tmp_path):
    data = load(typed_folder(tmp_path / "tables", with_tags(small_hetero()), ids=[700 + i for i in range(40)]))
    assert data.node_id[data.node_types.target_mask.numpy()].tolist() == [700 + i for i in range(40)]


def test_a_folder_is_found_by_its_name_under_the_data_folder(folder, monkeypatch):
    monkeypatch.setenv("LEGNN_DATA", str(folder.parent))
    assert load("tables").name == "tables"


def test_weights_are_read_where_a_table_has_them(folder):
    edges = pd.read_csv(folder / "edges" / "paper__tagged__tag.csv")
    edges["weight"] = 3.0
    edges.to_csv(folder / "edges" / "paper__tagged__tag.csv", index=False)
    weight = load(folder, undirected=False, self_loops=False).adjacency.weight
    assert sorted(set(weight.tolist())) == [1.0, 3.0]


def test_a_weight_column_of_ones_own_need_not_be_in_every_table(folder):
    edges = pd.read_csv(folder / "edges" / "paper__tagged__tag.csv")
    edges.assign(times=3.0, since=2020).to_csv(folder / "edges" / "paper__tagged__tag.csv", index=False)
    data = load(folder, undirected=False, self_loops=False, weight_column="times")
    assert sorted(set(data.adjacency.weight.tolist())) == [1.0, 3.0]
    text = "Left aside in paper__tagged__tag.csv: since; edges have ends and a weight alone."
    assert Note("columns-ignored", text) in data.notes


def test_text_is_that_of_the_one_table_that_has_the_column(folder):
    papers = pd.read_csv(folder / "nodes" / "paper.csv")
    papers["about"] = [["apple pear", "iron steel", "lake river"][i % 3] for i in range(40)]
    papers.to_csv(folder / "nodes" / "paper.csv", index=False)
    data = load(folder, text="about")
    assert data.table_features.tables["paper"].text.terms == ["apple", "iron", "lake", "pear", "river", "steel"]
    with pytest.raises(InputError, match="has a column 'abuot'; text names a column of one"):
        load(folder, text="abuot")


def rewrite(path, change):
    table = pd.read_csv(path)
    change(table).to_csv(path, index=False)


def label_authors(folder):
    rewrite(folder / "nodes" / "author.csv", lambda t: t.assign(label="x"))


def strange_end(folder):
    rewrite(folder / "edges" / "author__writes__paper.csv", lambda t: t.assign(target=["nobody", *t["target"][1:]]))


def no_end(folder):
    rewrite(folder / "edges" / "paper__tagged__tag.csv", lambda t: t.assign(target=[None, *t["target"][1:]]))


def both_kinds(folder):
    pd.read_csv(folder / "nodes" / "paper.csv").to_parquet(folder / "nodes" / "paper.parquet")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (label_authors, r"author\.csv and .*paper\.csv both have labels in column 'label'; one type alone"),
        (
            lambda f: rewrite(f / "nodes" / "paper.csv", lambda t: t.drop(columns="label")),
            "no table in .*nodes has labels in a column 'label'",
        ),
        (
            lambda f: rewrite(f / "nodes" / "paper.csv", lambda t: t.assign(label=None)),
            "no table in .*nodes has labels in a column 'label'",
        ),
        (strange_end, r"line 2, column 'target' names paper node 'nobody', which is not in the node table"),
        (no_end, r"tag\.csv, line 2, has no id in column 'target'; every edge has two ends"),
        (both_kinds, r"nodes has both paper\.parquet and paper\.csv"),
        (
            lambda f: (f / "edges" / "author__writes__paper.csv").rename(f / "edges" / "author_writes_paper.csv"),
            r"author_writes_paper\.csv does not say what it joins; a table of edges is called <type>__",
        ),
        (
            lambda f: (f / "edges" / "author__writes__paper.csv").rename(f / "edges" / "author____paper.csv"),
            "does not say what it joins",
        ),
        (lambda f: np.save(f / "nodes" / "tag.npy", np.ones((6, 2))), r"tag\.npy has no tag\.parquet or tag\.csv"),
        (
            lambda f: np.save(f / "nodes" / "paper.npy", np.ones((39, 2))),
            r"paper\.npy has 39 rows and paper\.csv has 40",
        ),
        (lambda f: shutil.rmtree(f / "nodes"), "nodes has no table; at least the type that is to be classified"),
        (lambda f: [file.unlink() for file in (f / "edges").iterdir()], "edges has no edges; a graph needs"),
        (lambda f: (f / "nodes.csv").write_text("id\n"), r"has nodes\.csv beside the folder edges"),
        (lambda f: (f / "nodes" / "empty.csv").write_text("id,f0\n"), r"empty\.csv has no rows"),
        (
            lambda f: rewrite(f / "nodes" / "author.csv", lambda t: t.assign(f1=[np.inf, *t["f1"][1:]])),
            "1 feature of 'author' of tables is missing, .* the first at node 'a0', column 'f1'",
        ),
        (
            lambda f: rewrite(f / "nodes" / "author.csv", lambda t: t.rename(columns={"id": "name"})),
            r"author\.csv has no column 'id'",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(folder, damage, message):
    damage(folder)
    with pytest.raises(InputError, match=message):
        load(folder)


def test_the_real_packages_have_their_published_size(real_data):
    data = load("debian-hetero")
    assert statistics(data)[:6] == ("debian-hetero", 100451, 560521, 128, 58, 63436)
    assert data.provenance.homophily == pytest.approx(0.495, abs=0.0006)
    assert [round(share) for share in statistics(data)[6:9]] == [53, 18, 28]
    assert data.node_id[0] == "0ad"
