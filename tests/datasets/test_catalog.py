"""Every named data set is the one that was published."""

import gzip
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.typed_graphs import small_hetero, typed_folder

from legnn.data import statistics
from legnn.datasets import CATALOG, load
from legnn.datasets.pickles import refuse_harmful_pickle
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
    # of several node types: dblp is in test_heterogeneous, the others below
    assert set(CATALOG) == {*PUBLISHED, "digits", "dblp", "ogbn-mag", "oag-venue"}


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
    assert [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)] == [90941, 29799, 48603]
    assert data.class_names[:2] == ["arxiv cs na", "arxiv cs mm"]
    assert data.node_id[:2].tolist() == [9657784, 39886162]
    assert data.notes[0].code == "other-features"


def test_arxiv_with_parallel_edges_has_as_many_as_the_published_code_makes(real_data):
    options = {"undirected": False, "self_loops": False, "remove_duplicates": False}
    source, target = load("ogbn-arxiv", **options).adjacency.edge_index
    assert (source.numel(), int((source == target).sum())) == (1_166_243, 0)
    kept = load("ogbn-arxiv", remove_duplicates=False)
    assert kept.num_edges == 2 * 1_166_243 + 169_343 == 2_501_829
    merged = load("ogbn-arxiv")
    n = merged.num_nodes
    assert merged.num_edges == len(torch.unique(torch.cat([source * n + target, target * n + source]))) + n == 2_484_941


def test_arxiv_is_read_the_same_from_ogbs_zip(real_data, tmp_path, monkeypatch):
    folder = real_data / "ogb" / "ogbn_arxiv"
    with zipfile.ZipFile(tmp_path / "arxiv.zip", "w") as zipped:
        for file in folder.rglob("*.gz"):
            zipped.write(file, Path("arxiv") / file.relative_to(folder))
    unzipped = load("ogbn-arxiv")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    from_zip = load("ogbn-arxiv")
    assert torch.equal(from_zip.adjacency.edge_index, unzipped.adjacency.edge_index)
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
            assert getattr(data, mask).tolist() == masks[mask].tolist()


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
    assert [*map(str, data.notes)] == [
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
    assert torch.equal(theirs.adjacency.edge_index, ours.adjacency.edge_index)
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


MAG_SIZES = {"author": 5, "field_of_study": 3, "institution": 2, "paper": 12}
MAG_EDGES = {
    "author___affiliated_with___institution": [(0, 0), (1, 1), (4, 1)],
    "author___writes___paper": [(i % 5, i) for i in range(12)],
    "paper___cites___paper": [(i, (i + 2) % 12) for i in range(12)],
    "paper___has_topic___field_of_study": [(i, i % 3) for i in range(12)],
}


def mag_folder(folder: Path, split_in: str = "split") -> Path:
    """Small tables in the layout of OGB's archive; PyG moves the folder `split` into `raw`."""

    def write(place: str, rows: list, header: str | None = None) -> None:
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [",".join(map(str, row)) for row in rows]
        path.write_bytes(gzip.compress("\n".join([*([header] if header else []), *lines, ""]).encode()))

    write("raw/num-node-dict.csv.gz", [MAG_SIZES.values()], ",".join(MAG_SIZES))
    write("raw/node-feat/paper/node-feat.csv.gz", [[i + 0.5, -i, 0.25, 1] for i in range(12)])
    write("raw/node-label/paper/node-label.csv.gz", [[i % 2] for i in range(12)])
    for relation, edges in MAG_EDGES.items():
        write(f"raw/relations/{relation}/edge.csv.gz", edges)
    for part, papers in (("train", range(6)), ("valid", range(6, 9)), ("test", range(9, 12))):
        write(f"{split_in}/time/paper/{part}.csv.gz", [[i] for i in papers])
    return folder


def mag_embedding() -> dict[str, torch.Tensor]:
    return {kind: torch.randn(size, 4) for kind, size in MAG_SIZES.items()}


def check_mag(data) -> None:
    assert data.node_types.names == list(MAG_SIZES)
    assert statistics(data)[:6] == ("ogbn-mag", 22, 39, data.x.shape[1], 2, 12)
    assert data.provenance.homophily == 1.0
    papers = data.node_types.target_mask
    assert data.x[papers, 0].tolist() == [i + 0.5 for i in range(12)]
    assert data.val_mask[papers].nonzero().flatten().tolist() == [6, 7, 8]
    assert data.node_id[papers.numpy()].tolist() == list(range(12))


@pytest.mark.parametrize(("place", "split_in"), [("ogb/ogbn_mag", "split"), ("ogb/mag", "raw/split")])
def test_mag_is_read_from_ogbs_folder_and_from_pygs(place, split_in, tmp_path, monkeypatch):
    folder = mag_folder(tmp_path / place, split_in)
    rows = mag_embedding()
    torch.save(rows, folder / "raw" / "mag_metapath2vec_emb.pt")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    data = load("ogbn-mag")
    check_mag(data)
    assert data.provenance.computed_features == []
    assert data.x.shape[1] == 4
    assert torch.equal(data.x[:5], rows["author"])


def test_mag_is_read_from_ogbs_zip_and_pygs_zip_of_embeddings(tmp_path, monkeypatch):
    folder = mag_folder(tmp_path / "unzipped")
    (tmp_path / "ogb").mkdir()
    with zipfile.ZipFile(tmp_path / "ogb" / "mag.zip", "w") as zipped:
        for file in folder.rglob("*.gz"):
            zipped.write(file, Path("mag") / file.relative_to(folder))
    rows = mag_embedding()
    torch.save(rows, tmp_path / "mag_metapath2vec_emb.pt")
    with zipfile.ZipFile(tmp_path / "ogb" / "mag_metapath2vec_emb.zip", "w") as zipped:
        zipped.write(tmp_path / "mag_metapath2vec_emb.pt", "mag_metapath2vec_emb.pt")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    data = load("ogbn-mag")
    check_mag(data)
    assert torch.equal(data.x[5:8], rows["field_of_study"])


def test_mag_without_the_published_embedding_has_computed_features_and_says_so(tmp_path, monkeypatch):
    mag_folder(tmp_path / "ogb" / "ogbn_mag")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    data = load("ogbn-mag", type_channels=4, download=False)
    check_mag(data)
    assert [*map(str, data.notes)] == [
        "Nodes of author, field_of_study and institution come without features: 4 were computed from the graph "
        "(spectral)."
    ]


@pytest.mark.parametrize("options", [{"missing_features": "published"}, {"features": "spectral"}], ids=str)
def test_where_features_are_computed_mags_embedding_is_not_read(options, tmp_path, monkeypatch):
    folder = mag_folder(tmp_path / "ogb" / "ogbn_mag")
    (folder / "raw" / "mag_metapath2vec_emb.pt").write_text("damaged")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    data = load("ogbn-mag", type_channels=4, **options)
    assert {"author", "field_of_study", "institution"} <= set(data.provenance.computed_features)


def test_an_embedding_that_would_run_code_is_refused_unopened(tmp_path, monkeypatch, capsys):
    folder = mag_folder(tmp_path / "ogb" / "ogbn_mag")
    torch.save(Harmful(), folder / "raw" / "mag_metapath2vec_emb.pt")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"mag_metapath2vec_emb\.pt could not be read"):
        load("ogbn-mag")
    assert capsys.readouterr().out == ""


def test_oag_venue_is_a_folder_of_typed_tables(tmp_path, monkeypatch):
    typed_folder(tmp_path / "oag-venue", small_hetero(), suffix="parquet")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    data = load("oag-venue")
    assert data.name == "oag-venue"
    assert data.node_types.names == ["author", "paper"]
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(InputError, match=r"has no tables of oag-venue; make them .* as docs/guide/node-types\.md says"):
        load("oag-venue")


def test_dblp_is_read_the_same_from_its_zip(real_data, tmp_path, monkeypatch):
    (tmp_path / "dblp_hetero").mkdir()
    with zipfile.ZipFile(tmp_path / "dblp_hetero" / "DBLP_processed.zip", "w") as zipped:
        for file in (real_data / "dblp_hetero" / "raw").iterdir():
            zipped.write(file, file.name)
    there = load("dblp")
    monkeypatch.setenv("LEGNN_DATA", str(tmp_path))
    from_zip = load("dblp")
    assert torch.equal(from_zip.adjacency.edge_index, there.adjacency.edge_index)
    assert torch.equal(from_zip.x, there.x)


def _writable(source, target):
    """Copies the content alone: the real graphs are read-only."""
    return shutil.copyfile(source, target)
