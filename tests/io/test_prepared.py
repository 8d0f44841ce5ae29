"""Prepared folders: the same graph, mapped and not copied, and damage that is named."""

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.full_disk import files_of_at_most
from tests.graphs import small_data, table_folder
from tests.typed_graphs import small_hetero, typed_folder, with_tags

from legnn.data import GraphData, NodeTypes, statistics
from legnn.datasets import load, prepare_folder
from legnn.errors import InputError
from legnn.io.prepared import write_prepared
from legnn.io.table_features import TableFeatures
from legnn.io.text_features import TextFeatures

EDGE_OPTIONS = [
    {},
    {"undirected": False},
    {"remove_duplicates": False},
    {"undirected": False, "remove_duplicates": False, "self_loops": False},
]


@pytest.fixture
def tables(tmp_path) -> Path:
    return table_folder(tmp_path / "tables", small_data())


@pytest.fixture
def prepared(tmp_path, tables) -> Path:
    prepare_folder(tables, tmp_path / "prepared")
    return tmp_path / "prepared"


def assert_same_tensors(mapped: object, plain: object, fields: tuple[str, ...]) -> None:
    for field in fields:
        one, other = getattr(mapped, field), getattr(plain, field)
        assert (one is None) == (other is None)
        if one is not None:
            assert torch.equal(one, other)
            assert one.dtype == other.dtype


def assert_same_graph(mapped: GraphData, plain: GraphData) -> None:
    tensors = ("x", "y", "train_mask", "val_mask", "test_mask", "label_x", "label_adjacency", "node_type")
    assert_same_tensors(mapped, plain, tensors)
    assert_same_tensors(mapped.adjacency, plain.adjacency, ("rowptr", "col", "weight"))
    assert mapped.adjacency.num_cols == plain.adjacency.num_cols
    for field in ("name", "class_names", "feature_names", "notes"):
        assert getattr(mapped, field) == getattr(plain, field)
    assert (mapped.node_types is None) == (plain.node_types is None)
    if plain.node_types is not None:
        for field in ("names", "target", "columns"):
            assert getattr(mapped.node_types, field) == getattr(plain.node_types, field)
        assert torch.equal(mapped.node_types.target_mask, plain.node_types.target_mask)
    np.testing.assert_equal(
        asdict(replace(mapped.provenance, fingerprint="")), asdict(replace(plain.provenance, fingerprint=""))
    )
    assert mapped.node_id.tolist() == plain.node_id.tolist()
    assert mapped.node_id.dtype == plain.node_id.dtype
    assert mapped.fingerprint() == plain.fingerprint()
    # and as it is computed, not only as it is stored
    again = replace(mapped, provenance=replace(mapped.provenance, fingerprint=""))
    assert again.fingerprint() == plain.fingerprint()
    np.testing.assert_equal(tuple(statistics(mapped)), tuple(statistics(plain)))


@pytest.mark.parametrize("options", EDGE_OPTIONS)
def test_a_prepared_folder_is_the_graph_of_the_tables(options, tables, tmp_path):
    written = prepare_folder(tables, tmp_path / "prepared", **options)
    assert_same_graph(load(tmp_path / "prepared"), written)
    assert_same_graph(load(tmp_path / "prepared"), load(tables, **options))


@pytest.mark.parametrize("ids", [list(range(40)), [7 * i for i in range(40)], [f"é {i}" for i in range(40)]])
def test_ids_keep_their_kind(ids, tmp_path):
    tables = table_folder(tmp_path / "tables", small_data(), ids=ids, names=[1.5, 2.5, 10.0])
    prepare_folder(tables, tmp_path / "prepared")
    assert_same_graph(load(tmp_path / "prepared"), load(tables))


def test_all_that_a_graph_in_memory_can_have_is_kept(tmp_path):
    data = small_data(
        edge_weight=torch.rand(small_data().edge_index.size(1)) + 0.5,
        label_x=torch.rand(3, 4),
        label_adjacency=torch.rand(3, 3),
        y=torch.full((40,), -1).index_copy(0, torch.arange(9), torch.arange(9) % 3),
        train_mask=torch.arange(40) < 6,
        val_mask=(torch.arange(40) >= 6) & (torch.arange(40) < 9),
        test_mask=torch.zeros(40, dtype=torch.bool),
    )
    prepare_folder(data, tmp_path / "prepared", undirected=False, self_loops=False)
    assert_same_graph(load(tmp_path / "prepared"), load(data, undirected=False, self_loops=False))


@pytest.mark.parametrize("method", ["spectral", "metapath2vec"])
def test_several_node_types_and_their_computed_features_are_kept(method, tmp_path):
    graph = with_tags(small_hetero())
    options = {"type_channels": 6, "missing_features": method}
    tables = typed_folder(tmp_path / "tables", graph)
    for source, name in ((graph, "of memory"), (tables, "of tables")):
        prepare_folder(source, tmp_path / name, **options)
        assert_same_graph(load(tmp_path / name), load(source, **options))
    with pytest.raises(InputError, match=r"type_channels of .* is 6, as it was prepared, and not 5"):
        load(tmp_path / "of tables", type_channels=5)


def test_a_type_that_is_not_there_is_named(tmp_path):
    prepare_folder(small_hetero(), tmp_path / "prepared")
    change_array("node_type", lambda kind: put(kind, 3, 2))(tmp_path / "prepared")
    with pytest.raises(InputError, match=r"node_type\.npy is damaged \(it must hold types from 0 to 1\)"):
        load(tmp_path / "prepared")


def test_types_of_nodes_are_carried_along(tables, tmp_path):
    types = NodeTypes(names=["author", "paper"], node_type=torch.arange(40) % 2, target="paper", columns=[["a"], ["b"]])
    write_prepared(tmp_path / "prepared", replace(load(tables), node_types=types))
    mapped = load(tmp_path / "prepared").node_types
    assert torch.equal(mapped.node_type, types.node_type)
    assert torch.equal(mapped.target_mask, types.node_type == 1)
    assert (mapped.names, mapped.columns) == (["author", "paper"], [["a"], ["b"]])


def test_features_of_a_text_are_kept_with_how_they_were_made(tables, tmp_path):
    nodes = (tables / "nodes.csv").read_text().splitlines()
    rows = [f"{row},word{i % 4} word{i % 3}" for i, row in enumerate(nodes[1:])]
    (tables / "nodes.csv").write_text("\n".join([nodes[0] + ",words", *rows]) + "\n")
    options = {"text": "words", "text_channels": 3}
    prepare_folder(tables, tmp_path / "prepared", **options)
    plain, mapped = load(tables, **options), load(tmp_path / "prepared")
    assert_same_graph(mapped, plain)
    assert mapped.table_features.computes_same(plain.table_features)
    assert load(tmp_path / "prepared", table_features=plain.table_features).num_nodes == 40
    columns = plain.table_features.tables["nodes"]
    other = TableFeatures({"nodes": replace(columns, text=TextFeatures.fit(["other words", "other words"], 3))})
    with pytest.raises(InputError, match="were made of its tables in another way than those of the run"):
        load(tmp_path / "prepared", table_features=other)


def test_a_prepared_folder_among_the_data_is_known_by_its_name(prepared, monkeypatch):
    monkeypatch.setenv("LEGNN_DATA", str(prepared.parent))
    assert load("prepared").num_nodes == 40


def test_a_loaded_graph_is_taken_again_as_it_is(prepared):
    data = load(prepared)
    again = load(data, training=False)
    assert again is data
    with pytest.raises(InputError, match="undirected of tables is True, as it was prepared, and not False"):
        load(data, undirected=False)


def test_who_writes_to_a_mapped_array_changes_nobody_elses(prepared):
    load(prepared).x.zero_()
    assert load(prepared).x.abs().sum() > 0


def test_options_that_were_fixed_in_preparing_are_refused(prepared, tables, tmp_path):
    with pytest.raises(InputError, match=r"split of .*prepared is 'default', as it was prepared, and not 2"):
        load(prepared, split=2)
    prepare_folder(tables, tmp_path / "directed", undirected=False)
    assert load(tmp_path / "directed", undirected=False).num_nodes == 40


def test_a_place_that_is_taken_is_refused_before_anything_is_read(tables, tmp_path):
    with pytest.raises(InputError, match=r"tables is already there; give another folder"):
        prepare_folder("nowhere", tables)
    (tmp_path / "empty").mkdir()
    prepare_folder(tables, tmp_path / "empty")
    assert load(tmp_path / "empty").num_nodes == 40
    with pytest.raises(InputError, match="is prepared already"):
        prepare_folder(tmp_path / "empty", tmp_path / "other")


@pytest.mark.parametrize("file", ["x.npy", "graph.json"])
def test_a_folder_appears_whole_or_not_at_all(tables, tmp_path, file):
    prepare_folder(tables, tmp_path / "whole")
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "whole").iterdir()}
    assert max(sizes, key=sizes.__getitem__) == "graph.json", "it is the last file, and the first that is too large"
    before = sorted(tmp_path.iterdir())
    with files_of_at_most(sizes[file] - 1), pytest.raises(OSError, match=rf"File too large.*{file}"):
        prepare_folder(tables, tmp_path / "prepared")
    assert sorted(tmp_path.iterdir()) == before


def change_card(**values: object):
    def change(folder: Path) -> None:
        card = json.loads((folder / "graph.json").read_text())
        (folder / "graph.json").write_text(json.dumps({**card, "digest": "", **values}))

    return change


def change_array(name: str, change):
    def damage(folder: Path) -> None:
        array = change(np.load(folder / f"{name}.npy"))
        np.save(folder / f"{name}.npy", array)

    return damage


def cut(name: str):
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:-5])

    return damage


def put(array: np.ndarray, place: int, value: int) -> np.ndarray:
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "x.npy").unlink(), r"has no x\.npy; restore it"),
        (lambda folder: (folder / "node_id.parquet").unlink(), r"has neither node_id\.npy nor node_id\.parquet"),
        (cut("x.npy"), r"x\.npy is damaged \(mmap length is greater than file size\); restore it"),
        (cut("col.npy"), r"col\.npy is damaged"),
        (cut("node_id.parquet"), r"node_id\.parquet is damaged"),
        (cut("graph.json"), r"graph\.json is damaged"),
        (lambda folder: (folder / "y.npy").write_bytes(b""), r"y\.npy is damaged"),
        (lambda folder: (folder / "y.npy").write_bytes(b"not an array"), r"y\.npy is damaged"),
        (lambda folder: (folder / "graph.json").write_text("[]"), "of version None and this legnn reads version 4"),
        (change_card(version=1), "is of version 1 and this legnn reads version 4; prepare the graph again"),
        (change_card(files={}), r"graph\.json is damaged \(it does not say what x\.npy holds\)"),
        (change_card(nodes=41), r"graph\.json is damaged \(x has the shape \[40, 5\] with 41 nodes\)"),
        (change_card(class_names=["a"]), r"y\.npy is damaged \(it must hold classes from -1 to 0\)"),
        (change_array("y", lambda y: y[:-1]), r"graph\.json is damaged \(y has the shape \[39\] with 40 nodes"),
        (change_array("x", lambda x: x.astype(np.float64)), r"x\.npy is damaged \(it holds <f8 and must hold float32"),
        (change_array("col", lambda col: put(col, 3, 40)), r"col\.npy is damaged \(it must hold nodes from 0 to 39\)"),
        (change_array("col", lambda col: put(col, 3, -1)), r"col\.npy is damaged"),
        (change_array("rowptr", lambda rowptr: put(rowptr, 3, 10**6)), r"rowptr\.npy is damaged \(it must ascend"),
        (change_array("split", lambda split: put(split, 3, 4)), r"split\.npy is damaged"),
    ],
)
def test_damage_is_named_in_one_sentence(damage, message, prepared):
    damage(prepared)
    with pytest.raises(InputError, match=message) as error:
        load(prepared)
    assert "\n" not in str(error.value)


def test_an_array_of_objects_is_not_opened(prepared):
    np.save(prepared / "y.npy", np.array([print] * 40, dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"y\.npy is damaged \(.*Python objects"):
        load(prepared)


def make_sparse(path: Path, rows: int, columns: int) -> None:
    """A `.npy` file of zeros that takes no room on the disk."""
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, columns)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * rows * columns)


def in_process(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def test_features_larger_than_memory_are_mapped_not_read(prepared):
    rows, columns = 40, 2**32  # 640 GiB
    make_sparse(prepared / "x.npy", rows, columns)
    change_card(features=columns, feature_names=None)(prepared)
    data = load(prepared)
    assert data.x.shape == (rows, columns)
    assert data.x[-1, -1] == 0


def resident(path: Path) -> dict[str, int]:
    """What of the mapping of a file is in the memory of this process, in KiB, by the kernel's names."""
    text = Path("/proc/self/smaps").read_text()
    found = re.search(rf"{re.escape(str(path))}\n((?:\w+:.*\n)+)", text)
    assert found is not None
    return {name: int(size) for name, size in re.findall(r"(\w+): +(\d+) kB", found[1])}


TOUCH = """
import sys
from pathlib import Path
from legnn.datasets import load
from tests.io.test_prepared import resident
data = load(sys.argv[1])
data.x.sum()
sizes = resident(Path(sys.argv[1]) / "x.npy")
print(sizes["Rss"], sizes["Pss"], sizes["Private_Dirty"])
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="asks the kernel of Linux")
def test_two_processes_share_one_copy(tmp_path):
    data = small_data(x=torch.rand(40, 100_000))
    prepare_folder(data, tmp_path / "prepared")
    mapped = load(tmp_path / "prepared")
    mapped.x.sum()
    size = data.x.nbytes // 1024
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{TOUCH}"
    rss, pss, dirty = map(int, in_process(code, tmp_path / "prepared").split())
    assert rss >= 0.9 * size
    assert pss <= 0.6 * size, "half of each page belongs to the other process"
    assert dirty == 0, "no page was copied"
    assert resident(tmp_path / "prepared" / "x.npy")["Private_Dirty"] == 0


PREPARE = """
import sys, threading, time
from legnn.datasets import prepare_folder

def own():
    return int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0]) // 1024

def watch():
    while True:
        peak.append(own())
        time.sleep(0.002)

prepare_folder(sys.argv[1], sys.argv[1] + "-before")
peak = [own()]
threading.Thread(target=watch, daemon=True).start()
prepare_folder(sys.argv[2], sys.argv[2] + "-prepared")
print(max(peak) - peak[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="asks the kernel of Linux")
def test_a_feature_file_is_prepared_without_being_in_memory(tables, tmp_path):
    big = table_folder(tmp_path / "big", small_data(4000))
    make_sparse(big / "features.npy", 4000, 2**14)  # 250 MiB
    own_mib = int(in_process(PREPARE, tables, big))
    assert own_mib < 100
    mapped = load(tmp_path / "big-prepared")
    assert mapped.x.shape == (4000, 2**14)
    assert mapped.notes == load(big).notes
