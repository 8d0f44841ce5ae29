"""Every named data set is the one that was published."""

import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from legnn.data import CATALOG, load, statistics
from legnn.data.pickles import refuse_harmful_pickle
from legnn.errors import InputError

# nodes, edges as stored, features, classes, homophily; ogbn-arxiv's is the paper's, the others the data folder's README
PUBLISHED = {
    "cora": (2708, 10556, 1433, 7, 0.810),
    "citeseer": (3327, 9104, 3703, 6, 0.736),
    "pubmed": (19717, 88648, 500, 3, 0.802),
    "amazon-photo": (7650, 238162, 745, 8, 0.827),
    "amazon-computers": (13752, 491722, 767, 10, 0.777),
    "coauthor-cs": (18333, 163788, 6805, 15, 0.808),
    "tolokers": (11758, 1038000, 10, 2, 0.595),
    "minesweeper": (10000, 78804, 7, 2, 0.683),
    "chameleon-filtered": (890, 17708, 2325, 5, 0.236),
    "squirrel-filtered": (2223, 93996, 2089, 5, 0.207),
    "actor": (7600, 30019, 932, 5, 0.219),
    "ogbn-arxiv": (169343, 1166243, 40, 40, 0.6551),
}


def test_every_named_set_is_checked_here_or_needs_no_file():
    assert set(CATALOG) == {*PUBLISHED, "digits"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_named_set_has_the_published_size_and_homophily(name, real_data):
    nodes, edges, features, classes, homophily = PUBLISHED[name]
    found = statistics(load(name))
    assert found[:5] == (name, nodes, edges, features, classes)
    assert found.labeled == nodes
    assert found.homophily == pytest.approx(homophily, abs=0.0006 if homophily != 0.6551 else 0.00005)


def test_the_debian_folder_has_its_published_size_and_homophily(real_data):
    data = load(real_data / "debian")
    found = statistics(data)
    assert found[:5] == ("debian", 63436, 321531, 128, 58)
    assert found.homophily == pytest.approx(0.495, abs=0.0006)
    assert [round(share) for share in found[6:9]] == [53, 18, 28]
    assert data.class_names == sorted(data.class_names)
    assert data.node_id[0] == "0ad"


def test_arxiv_has_ogbs_split_and_says_its_features_are_others(real_data):
    data = load("ogbn-arxiv")
    assert [int(data[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask")] == [90941, 29799, 48603]
    assert data.class_names[:2] == ["arxiv cs na", "arxiv cs mm"]
    assert data.node_id[:2].tolist() == [9657784, 39886162]
    assert "not the published word vectors" in data.notes[0]


def test_arxiv_is_read_the_same_from_ogbs_zip(real_data, tmp_path, monkeypatch):
    folder = real_data / "ogb" / "ogbn_arxiv"
    with zipfile.ZipFile(tmp_path / "arxiv.zip", "w") as zipped:
        for file in folder.rglob("*.gz"):
            zipped.write(file, Path("arxiv") / file.relative_to(folder))
    unzipped = load("ogbn-arxiv")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    from_zip = load("ogbn-arxiv")
    assert torch.equal(from_zip.edge_index, unzipped.edge_index)
    assert torch.equal(from_zip.x, unzipped.x)


def test_arxiv_with_a_table_cut_short_is_refused(real_data, tmp_path, monkeypatch):
    copy = shutil.copytree(real_data / "ogb" / "ogbn_arxiv", tmp_path / "ogb" / "ogbn_arxiv", copy_function=_writable)
    edges = copy / "raw" / "edge.csv.gz"
    edges.write_bytes(edges.read_bytes()[:-1000])
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"edge\.csv\.gz could not be read"):
        load("ogbn-arxiv")


def test_planetoids_default_is_the_public_split(real_data):
    data = load("cora")
    assert torch.bincount(data.y[data.train_mask]).tolist() == [20] * 7
    assert int(data.val_mask.sum()) == 500
    assert int(data.test_mask.sum()) == 1000


def test_planetoids_numbered_splits_are_geom_gcns(real_data):
    file = real_data / "planetoid" / "Cora" / "geom-gcn" / "raw" / "cora_split_0.6_0.2_3.npz"
    with np.load(file, allow_pickle=False) as masks:
        data = load("cora", split=3)
        for mask in ("train_mask", "val_mask", "test_mask"):
            assert data[mask].tolist() == masks[mask].tolist()


@pytest.mark.parametrize("name", ["cora", "actor", "minesweeper", "chameleon-filtered"])
def test_a_split_beyond_the_ten_is_refused(name, real_data):
    with pytest.raises(InputError, match=f"split 10 of {name} does not exist; choose 0 to 9"):
        load(name, split=10)


def test_the_class_names_of_cora_and_citeseer_fit_the_sizes_of_their_classes(real_data):
    sizes = {
        "cora": {"Neural_Networks": 818, "Probabilistic_Methods": 426, "Genetic_Algorithms": 418, "Theory": 351}
        | {"Case_Based": 298, "Reinforcement_Learning": 217, "Rule_Learning": 180},
        # the 15 papers without a class count as the first
        "citeseer": {"DB": 701, "IR": 668, "Agents": 596, "ML": 590, "HCI": 508, "AI": 249 + 15},
    }
    for name, expected in sizes.items():
        data = load(name)
        assert dict(zip(data.class_names, torch.bincount(data.y).tolist(), strict=True)) == expected


def test_without_its_split_file_a_set_has_a_drawn_split_and_says_so(real_data, tmp_path, monkeypatch):
    (tmp_path / "amazon").symlink_to(real_data / "amazon")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    data = load("amazon-photo")
    assert statistics(data).train_percent == pytest.approx(60, abs=0.1)
    assert data.notes == [
        "amazon-photo comes without a split: 60/20/20 of the labeled nodes were drawn, class by class (seed 0)."
    ]


def test_digits_need_no_file_and_have_few_labels(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    data = load()
    assert torch.bincount(data.y[data.train_mask]).tolist() == [10] * 10
    assert int(data.val_mask.sum()) == 300
    assert data.class_names == list(range(10))
    assert float(data.x.max()) == 1.0
    assert not torch.equal(load("digits", split=1).train_mask, data.train_mask)
    assert torch.equal(load("digits", split=0).train_mask, data.train_mask)


def test_the_published_layout_of_a_filtered_set_gives_the_same_graph(real_data, tmp_path, monkeypatch):
    ours = load("chameleon-filtered", split=2)
    with np.load(real_data / "filtered" / "chameleon_filtered.npz", allow_pickle=False) as arrays:
        edges = arrays["edge_index"]
        once = edges[:, edges[0] < edges[1]]
        masks = {f"{part}_masks": arrays[f"{part}_mask"].T for part in ("train", "val", "test")}
    (tmp_path / "filtered").mkdir()
    published = {"node_features": ours.x.numpy(), "node_labels": ours.y.numpy(), "edges": once.T, **masks}
    np.savez(tmp_path / "filtered" / "chameleon_filtered.npz", **published)
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    theirs = load("chameleon-filtered", split=2)
    assert torch.equal(theirs.edge_index, ours.edge_index)
    assert torch.equal(theirs.val_mask, ours.val_mask)
    assert torch.equal(theirs.x, ours.x)


def test_reading_leaves_nothing_behind_in_the_data_folder(real_data, tmp_path, monkeypatch):
    shutil.copytree(real_data / "planetoid" / "Cora" / "raw", tmp_path / "planetoid" / "Cora" / "raw")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    load("cora")
    assert sorted(tmp_path.rglob("*")) == before


class Harmful:
    def __reduce__(self):
        return (print, ("this must never be printed",))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_code_is_refused_unopened(protocol, real_data, tmp_path, monkeypatch, capsys):
    raw = shutil.copytree(
        real_data / "planetoid" / "Cora" / "raw", tmp_path / "planetoid" / "Cora" / "raw", copy_function=_writable
    )
    (raw / "ind.cora.graph").write_bytes(pickle.dumps(Harmful(), protocol=protocol))
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"ind\.cora\.graph names .* may run code and was not opened"):
        load("cora")
    assert capsys.readouterr().out == ""


def test_a_pickle_cut_short_is_refused(real_data, tmp_path):
    cut = tmp_path / "ind.cora.x"
    cut.write_bytes((real_data / "planetoid" / "Cora" / "raw" / "ind.cora.x").read_bytes()[:1000])
    with pytest.raises(InputError, match="is damaged"):
        refuse_harmful_pickle(cut)


@pytest.mark.parametrize(("name", "file"), [("minesweeper", "heterophilous/minesweeper/raw/minesweeper.npz")])
def test_a_damaged_file_is_named(name, file, real_data, tmp_path, monkeypatch):
    place = tmp_path / file
    place.parent.mkdir(parents=True)
    place.write_bytes((real_data / file).read_bytes()[:5000])
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"minesweeper\.npz could not be read"):
        load(name)


def _writable(source, target):
    """Copies the content alone: the real graphs are read-only."""
    return shutil.copyfile(source, target)
