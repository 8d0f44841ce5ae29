"""Readers of the published formats, to a PyG `Data` or `HeteroData`.

PyG's data sets write a `processed` folder beside the raw files, trust one that is there already, and download missing
files. They run here in a temporary folder of links, so that the data folder may be read-only and nothing is downloaded,
stored or unpickled without the user's knowledge.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import torch
from torch import Tensor

from legnn.config.data import DataSettings
from legnn.data.embedding import MAG_RELATIONS
from legnn.data.splits import MASKS, to_masks
from legnn.datasets.download import Fetch, RemoteFile
from legnn.datasets.pickles import refuse_harmful_pickle
from legnn.errors import InputError
from legnn.files import data_folder
from legnn.io.table_files import as_input_error
from legnn.io.typed_tables import has_types, read_typed_folder
from legnn.lazy import lazy_module

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

pyg_data = lazy_module("torch_geometric.data")
pyg_datasets = lazy_module("torch_geometric.datasets")
pyg_utils = lazy_module("torch_geometric.utils")
scipy_sparse = lazy_module("scipy.sparse")

MAG_EMBEDDING = "mag_metapath2vec_emb.pt"


def read_planetoid(
    folder: str, common: tuple[RemoteFile, ...], splits: tuple[RemoteFile, ...], split: int | None, fetch: Fetch
) -> Data:
    """Returns Cora, CiteSeer or PubMed with the public split, or geom-gcn's ten if `split` is given."""
    files = [fetch(file) for file in common]
    for file in files:
        if file.suffix != ".index":
            refuse_harmful_pickle(file)
    if split is None:
        raw, kind = f"{folder}/raw", "public"
    else:
        files += [fetch(file) for file in splits]
        raw, kind = f"{folder}/geom-gcn/raw", "geom-gcn"
    return _read_with_pyg(
        lambda root: pyg_datasets.Planetoid(root, folder, split=kind), {f"{raw}/{file.name}": file for file in files}
    )


def read_gnn_benchmark(dataset: str, folder: str, split_file: str, file: RemoteFile, fetch: Fetch) -> Data:
    """Returns a data set of Amazon or Coauthor, with the 60/20/20 split if its file exists."""
    kind = getattr(pyg_datasets, dataset)
    data = _read_with_pyg(lambda root: kind(root, folder), {f"{folder}/raw/{Path(file.path).name}": fetch(file)})
    path = data_folder() / split_file
    if path.is_file():
        with as_input_error(path), np.load(path, allow_pickle=False) as parts:
            data.update(_masks(parts.__getitem__, len(data.y)))
    return data


def read_actor(files: tuple[RemoteFile, ...], fetch: Fetch) -> Data:
    """Returns Actor with geom-gcn's ten splits."""
    return _read_with_pyg(pyg_datasets.Actor, {f"raw/{Path(file.path).name}": fetch(file) for file in files})


def read_heterophilous(name: str, file: RemoteFile, fetch: Fetch) -> Data:
    """Returns tolokers or minesweeper with their ten splits."""
    files = {f"{name}/raw/{name}.npz": fetch(file)}
    return _read_with_pyg(lambda root: pyg_datasets.HeterophilousGraphDataset(root, name), files)


def read_filtered(file: RemoteFile, fetch: Fetch) -> Data:
    """Returns filtered chameleon or squirrel, published or with sparse features and edges in both directions."""
    path = fetch(file)
    with as_input_error(path), np.load(path, allow_pickle=False) as arrays:
        if "node_features" in arrays:
            y = torch.from_numpy(arrays["node_labels"])
            edge_index = pyg_utils.to_undirected(
                torch.from_numpy(arrays["edges"].T).long().contiguous(), num_nodes=len(y)
            )
            masks = {mask: torch.from_numpy(arrays[f"{mask}s"].T) for mask in MASKS}
            return pyg_data.Data(x=torch.from_numpy(arrays["node_features"]), y=y, edge_index=edge_index, **masks)
        sparse = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
        x = torch.from_numpy(scipy_sparse.csr_matrix(sparse, arrays["x_shape"]).toarray())
        masks = {mask: torch.from_numpy(arrays[mask]) for mask in MASKS}
        edge_index = torch.from_numpy(arrays["edge_index"])
        return pyg_data.Data(x=x, y=torch.from_numpy(arrays["y"]), edge_index=edge_index, **masks)


def read_arxiv(archive: RemoteFile, fetch: Fetch) -> Data:
    """Returns ogbn-arxiv from OGB's archive, zipped or not, split by year; edges go from the citing paper."""
    open_member = _ogb_opener("arxiv", archive, fetch)
    x = _csv_numbers(open_member("raw/node-feat.csv.gz"), pa.float32())
    y = _csv_numbers(open_member("raw/node-label.csv.gz"), pa.int64()).flatten()
    edges = _csv_numbers(open_member("raw/edge.csv.gz"), pa.int64())
    categories = _csv_rows(open_member("mapping/labelidx2arxivcategeory.csv.gz"))
    papers = _csv_rows(open_member("mapping/nodeidx2paperid.csv.gz"))
    return pyg_data.Data(
        x=torch.from_numpy(x),
        y=torch.from_numpy(y),
        edge_index=torch.from_numpy(np.ascontiguousarray(edges.T)),
        class_names=categories.sort_by("label idx")["arxiv category"].to_pylist(),
        node_id=papers.sort_by("node idx")["paper id"].to_numpy(),
        **_masks(lambda part: _csv_numbers(open_member(f"split/time/{part}.csv.gz"), pa.int64()), len(y)),
    )


def read_mag(archive: RemoteFile, embedding: RemoteFile | None, fetch: Fetch) -> HeteroData:
    """Returns ogbn-mag from OGB's archive, zipped or not, or as PyG unpacks it, split by year.

    Papers have word vectors; authors, institutions and fields the metapath2vec embedding that PyG publishes, or no
    features where that is not asked for or cannot be downloaded.
    """
    open_member = _ogb_opener("mag", archive, fetch)
    graph = pyg_data.HeteroData()
    sizes = _csv_rows(open_member("raw/num-node-dict.csv.gz")).to_pylist()[0]
    for kind, size in sizes.items():
        graph[kind].num_nodes = int(size)
    graph["paper"].x = torch.from_numpy(_csv_numbers(open_member("raw/node-feat/paper/node-feat.csv.gz"), pa.float32()))
    y = _csv_numbers(open_member("raw/node-label/paper/node-label.csv.gz"), pa.int64()).flatten()
    graph["paper"].y = torch.from_numpy(y)
    for relation in MAG_RELATIONS:
        edges = _csv_numbers(open_member(f"raw/relations/{'___'.join(relation)}/edge.csv.gz"), pa.int64())
        graph[relation].edge_index = torch.from_numpy(np.ascontiguousarray(edges.T))

    def indices(part: str) -> np.ndarray:
        member = f"split/time/paper/{part}.csv.gz"
        return _csv_numbers(open_member(member, f"raw/{member}"), pa.int64())

    graph["paper"].update(_masks(indices, len(y)))
    for kind, rows in ({} if embedding is None else _mag_embedding(embedding, fetch)).items():
        if kind != "paper":
            graph[kind].x = rows
    return graph


def _masks(indices: Callable[[str], np.ndarray], num_nodes: int) -> dict[str, Tensor]:
    """Returns the masks [M] from a function that returns the nodes of a split."""
    split = torch.zeros(num_nodes, dtype=torch.int8)
    for value, name in enumerate(("train", "valid", "test"), 1):
        split[torch.from_numpy(indices(name).flatten())] = value
    return to_masks(split)


def _mag_embedding(embedding: RemoteFile, fetch: Fetch) -> dict[str, Tensor]:
    """Returns the published rows of each type; none where they are neither on disk nor can be downloaded."""
    folders = ("ogb", *(f"{candidate}/raw" for candidate in _ogb_places("mag")))
    unzipped = [data_folder() / folder / MAG_EMBEDDING for folder in folders]
    path = next((candidate for candidate in unzipped if candidate.is_file()), None)
    if path is None:
        try:
            path = fetch(embedding)
        except InputError:  # features are computed instead, and a note says so
            return {}
    with as_input_error(path):
        content = path.read_bytes()
        if path.suffix == ".zip":
            with zipfile.ZipFile(io.BytesIO(content)) as zipped:
                content = zipped.read(MAG_EMBEDDING)
        # tensors only: anything else in the file is refused without being executed
        rows = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        if not isinstance(rows, dict) or not all(isinstance(value, Tensor) for value in rows.values()):
            raise ValueError("it does not hold a tensor for each node type")
        return rows


def read_dblp(files: tuple[RemoteFile, ...], archive: RemoteFile, fetch: Fetch) -> HeteroData:
    """Returns DBLP with MAGNN's split, from its files or from their archive."""
    paths = [data_folder() / file.path for file in files]
    if all(path.is_file() for path in paths):
        return _read_with_pyg(pyg_datasets.DBLP, {f"raw/{path.name}": path for path in paths})
    zip_file = fetch(archive)
    with tempfile.TemporaryDirectory(prefix="legnn-") as folder:
        unzipped = {f"raw/{path.name}": Path(folder) / path.name for path in paths}
        with as_input_error(zip_file), zipfile.ZipFile(zip_file) as zipped:
            for path in unzipped.values():
                path.write_bytes(zipped.read(path.name))
        return _read_with_pyg(pyg_datasets.DBLP, unzipped)


def read_oag_venue(folder: str) -> HeteroData:
    """Returns the graph of a folder of typed tables, which the user makes from the published graph."""
    path = data_folder() / folder
    if not has_types(path):
        raise InputError(
            f"{path} has no tables of {folder}; make them of the published graph as docs/guide/node-types.md says, or "
            f"set LEGNN_DATA to the folder that holds {folder}"
        )
    return read_typed_folder(path, DataSettings(), None)


def _read_with_pyg(dataset: Callable[[str], Any], files: Mapping[str, Path]) -> Any:
    """Reads with a data set class of PyG, in a temporary folder of links to the raw `files`."""
    first = next(iter(files.values()))
    read_from = first if len(files) == 1 else first.parent
    with tempfile.TemporaryDirectory(prefix="legnn-") as root:
        for name, file in files.items():
            link = Path(root) / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.resolve())
        # PyG prints its progress, and NumPy warns of old pickles: neither helps the user
        with as_input_error(read_from), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dataset(root)[0]


def _ogb_places(name: str) -> tuple[str, ...]:
    """Returns the folders under the data folder that may hold an unzipped OGB data set."""
    return f"ogb/ogbn_{name}", f"ogb/{name}", f"ogbn_{name}", name


def _ogb_opener(name: str, archive: RemoteFile, fetch: Fetch) -> Callable[..., bytes]:
    """Returns a function from a member's name to its unzipped bytes; of several names, the first that exists."""
    places = (*_ogb_places(name), f"ogb/{name}.zip", f"{name}.zip")
    unzipped = next((source for name_on_disk in places if (source := data_folder() / name_on_disk).exists()), None)
    source = unzipped or fetch(archive)

    def open_member(*members: str) -> bytes:
        with as_input_error(source / members[0]):
            if source.is_dir():
                first = next((member for member in members if (source / member).is_file()), members[0])
                return gzip.decompress((source / first).read_bytes())
            with zipfile.ZipFile(source) as zipped:
                return gzip.decompress(zipped.read(f"{name}/{members[0]}"))

    return open_member


def _csv_numbers(text: bytes, kind: pa.DataType) -> np.ndarray:
    """Returns the numbers [rows, columns] of a table without a header."""
    columns = [str(i) for i in range(text[: text.find(b"\n")].count(b",") + 1)]
    with as_input_error(Path("a table of OGB")):
        table = pacsv.read_csv(
            pa.BufferReader(text),
            read_options=pacsv.ReadOptions(column_names=columns),
            convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(columns, kind)),
        )
        return np.column_stack([column.to_numpy() for column in table.columns])


def _csv_rows(text: bytes) -> pa.Table:
    with as_input_error(Path("a mapping of OGB")):
        return pacsv.read_csv(pa.BufferReader(text))
