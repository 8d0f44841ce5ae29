"""A prepared folder is refused in one sentence, or is the graph that was prepared: there is nothing in between."""

import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.graphs import small_data

from legnn.datasets import check_prepared, load, prepare_folder
from legnn.errors import FolderInUse, InputError
from legnn.files import digest_file
from legnn.io.prepared import SMALL
from legnn.io.prepared_card import read_card, write_card
from legnn.locks import hold_folder

ROOT = Path(__file__).parents[2]
ARRAYS = ("x", "y", "split", "rowptr", "col", "weight", "node_id", "label_x", "label_adjacency")


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    data = small_data(label_x=torch.rand(3, 4), label_adjacency=torch.rand(3, 3))
    data.edge_weight = torch.rand(data.edge_index.size(1)) + 0.5
    place = tmp_path_factory.mktemp("prepared") / "graph"
    prepare_folder(data, place)
    return place


@pytest.fixture
def prepared(original, tmp_path) -> Path:
    return shutil.copytree(original, tmp_path / "graph")


def sentence(folder: Path) -> str | None:
    """The sentence with which the folder is refused; None if it is not."""
    try:
        load(folder)
    except InputError as error:
        return str(error)
    return None


def refuse(folder: Path) -> str:
    """The sentence with which the folder is refused."""
    said = sentence(folder)
    assert said is not None
    assert "\n" not in said
    return said


def save_as(path: Path, array: np.ndarray) -> None:
    """Writes an array and what `graph.json` says of it, as somebody would who made the folder by hand."""
    np.save(path, array, allow_pickle=False)
    card = json.loads((path.parent / "graph.json").read_text())
    card["files"][path.name] = ""
    (path.parent / "graph.json").write_text(json.dumps({**card, "digest": ""}))


def test_a_row_pointer_of_floats_with_a_nan_is_refused(prepared):
    rowptr = np.load(prepared / "rowptr.npy").astype(np.float64)
    rowptr[5] = np.nan
    save_as(prepared / "rowptr.npy", rowptr)
    assert "rowptr.npy is damaged (it holds <f8 and must hold int32 or int64 of this machine)" in refuse(prepared)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("kind", ["float16", "float64", "int8", "uint32", "complex64", "bool", ">i8", ">f4", "S4"])
def test_an_array_of_another_type_is_refused(name, kind, prepared):
    array = np.load(prepared / f"{name}.npy")
    other = array.astype(kind)
    if other.dtype == array.dtype or (name == "node_id" and other.dtype.kind in "iu" and other.dtype.isnative):
        return
    save_as(prepared / f"{name}.npy", other)
    assert f"{name}.npy is damaged" in refuse(prepared)


@pytest.mark.parametrize("name", ["x", "label_x", "label_adjacency"])
def test_an_array_in_order_of_its_columns_is_refused(name, prepared):
    save_as(prepared / f"{name}.npy", np.asfortranarray(np.load(prepared / f"{name}.npy")))
    assert "must be in order of its rows" in refuse(prepared)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("x", np.nan, "features must be finite"),
        ("x", np.inf, "features must be finite"),
        ("label_x", -np.inf, "features must be finite"),
        ("weight", np.nan, "weights must be finite and above 0"),
        ("weight", 0, "weights must be finite and above 0"),
        ("weight", np.inf, "weights must be finite and above 0"),
        ("label_adjacency", np.nan, "weights must be finite and not negative"),
        ("y", 3, "classes from -1 to 2"),
        ("y", -1, "it has nodes without a label"),
        ("y", np.iinfo(np.int64).min, "classes from -1 to 2"),
        ("split", -1, "parts from 0 to 3"),
        ("col", 40, "nodes from 0 to 39"),
        ("rowptr", -1, "must ascend"),
    ],
)
def test_a_value_out_of_its_range_is_refused(name, value, message, prepared):
    array = np.load(prepared / f"{name}.npy")
    array.flat[0] = value
    save_as(prepared / f"{name}.npy", array)
    assert message in refuse(prepared)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (40,)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (9999999999999999999,)}",
        "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (40,)}",
        "{'descr': '<i8', 'fortran_order': 3, 'shape': (40,)}",
        "{'descr': 5, 'fortran_order': False, 'shape': (40,)}",
        "((((((((((" * 200,
        "{'a': " * 200,
        "__import__('os').system('touch executed')",
        "\x00\xff 'é",
    ],
)
def test_a_header_that_lies_is_refused(header, prepared):
    line = header.encode("latin1") + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + bytes(320)
    (prepared / "y.npy").write_bytes(content)
    assert "y.npy is damaged" in refuse(prepared)


def mutate(content: bytes, random: random.Random) -> bytes:
    """Flips a bit, cuts, repeats or removes a part, or overwrites one."""
    begin = random.randrange(len(content))
    end = min(begin + random.choice([1, 2, 8, 100]), len(content))
    kind = random.randrange(5)
    if kind == 0:
        return content[:begin] + bytes([content[begin] ^ 1 << random.randrange(8)]) + content[begin + 1 :]
    other = {1: b"", 2: content[begin:end] * 2, 3: random.randbytes(end - begin), 4: bytes(end - begin)}[kind]
    return content[:begin] if kind == 1 and random.random() < 0.5 else content[:begin] + other + content[end:]


def test_no_mutation_of_any_file_gives_another_graph(original, prepared):
    """400 seeded mutations: refused in one sentence, or the same graph to the bit."""
    fingerprint, draw, refused = load(original).fingerprint(), random.Random(0), 0
    files = sorted(path.name for path in original.iterdir())
    for _ in range(400):
        name = draw.choice(files)
        before = (original / name).read_bytes()
        (prepared / name).write_bytes(mutate(before, draw))
        said = sentence(prepared)
        if said is None:
            found = load(prepared)
            again = replace(found, provenance=replace(found.provenance, fingerprint=""))
            assert again.fingerprint() == found.fingerprint() == fingerprint, name
        else:
            assert "\n" not in said
            refused += 1
        (prepared / name).write_bytes(before)
    assert refused > 330


WRONG = [None, -1, 1.5, 10**30, "word", [], {}, [[]]]


def paths_of(value: object, place: tuple = ()):
    """Every place in a JSON value."""
    yield place
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths_of(child, (*place, key))


def test_no_other_value_in_the_card_gives_a_traceback(prepared):
    card = json.loads((prepared / "graph.json").read_text())
    # of a folder made by hand, in which a digest notices nothing
    card["digest"] = ""
    for place in [*paths_of(card)][1:]:
        wrong = copy.deepcopy(card)
        at = wrong
        for key in place[:-1]:
            at = at[key]
        for value in WRONG:
            at[place[-1]] = value
            (prepared / "graph.json").write_text(json.dumps(wrong))
            assert "\n" not in (sentence(prepared) or ""), place
        del at[place[-1]]
        (prepared / "graph.json").write_text(json.dumps(wrong))
        assert "\n" not in (sentence(prepared) or ""), place


@pytest.mark.parametrize(
    "text", ['{"version": ' + "9" * 5000 + "}", "[" * 100_000, '{"version": NaN}', "\ufeff{}", "\x00"]
)
def test_a_card_that_is_no_json_is_refused(text, prepared):
    (prepared / "graph.json").write_text(text)
    assert "graph.json" in refuse(prepared)


CHANGES = {
    "x": lambda x: x + 1,
    "y": lambda y: np.where(y >= 0, (y + 1) % 3, y),
    "split": lambda split: np.where(split == 2, 1, split).astype(np.int8),
    "weight": lambda weight: weight[::-1],
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_sound_value_that_was_changed_is_noticed(name, prepared):
    np.save(prepared / f"{name}.npy", CHANGES[name](np.load(prepared / f"{name}.npy")))
    assert f"{name}.npy was changed after the graph was prepared" in refuse(prepared)


def test_of_a_large_folder_a_change_is_noticed_on_demand(prepared):
    card = read_card(prepared)
    # a file of zeros that takes no place on the disk
    x = np.lib.format.open_memmap(prepared / "x.npy", "w+", np.float32, (40, SMALL // 160 + 1))
    files = {**card.files, "x.npy": digest_file(prepared / "x.npy")}
    write_card(prepared, replace(card, features=x.shape[1], feature_names=None, files=files))
    x[3, 5] = 1.0
    x.flush()
    assert load(prepared).num_nodes == 40
    with pytest.raises(InputError, match=r"x\.npy was changed"):
        check_prepared(prepared)


PREPARE = """
import os, resource, signal, sys
from tests.graphs import small_data
from legnn.datasets import prepare_folder

# the kernel ends the process within the write that makes a file too large: nothing can be cleaned up
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
prepare_folder(small_data(), sys.argv[1])
"""


def test_a_folder_whose_process_was_killed_is_explained_and_prepared_anew(tmp_path):
    place, whole = tmp_path / "graph", tmp_path / "whole"
    prepare_folder(small_data(), whole)
    most = (whole / "graph.json").stat().st_size - 1
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", PREPARE, str(place), str(most)], env=environment, timeout=120)
    assert done.returncode == -signal.SIGXFSZ
    assert (place / "x.npy").is_file()
    assert not (place / "graph.json").exists()
    with pytest.raises(InputError, match="is being prepared, or that was cut short; wait for it, or prepare it again"):
        load(place)
    prepare_folder(small_data(), place)
    assert load(place).num_nodes == 40
    assert not (place / ".unfinished").exists()


def test_arrays_of_ones_own_are_never_removed(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(InputError, match="is already there"):
        prepare_folder(small_data(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_a_folder_that_another_prepares_is_refused(tmp_path):
    with hold_folder(tmp_path / "graph"), pytest.raises(FolderInUse):
        prepare_folder(small_data(), tmp_path / "graph")
