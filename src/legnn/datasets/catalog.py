"""The catalog of named data sets: description, files and reader of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from legnn.config.data import DataSettings
from legnn.data.raw_graph import RawGraph
from legnn.data.splits import split_number
from legnn.datasets.digits import read_digits
from legnn.datasets.download import Fetch, RemoteFile
from legnn.lazy import lazy_module
from legnn.notes import Note

if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

    from legnn.datasets import readers
else:
    readers = lazy_module("legnn.datasets.readers")

PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
GNN_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
HETEROPHILOUS = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"
PYG = "https://data.pyg.org/datasets"
DROPBOX = "https://www.dropbox.com/s/yh4grpeks87ugr2"

GEOM_GCN_SPLITS = 10


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A data set that can be loaded by name."""

    name: str
    description: str
    """Description of nodes, edges and classes."""
    splits: str
    """Values of `split`, and the default."""
    read: Callable[[DataSettings, Fetch], Data | HeteroData | RawGraph]
    """From the settings of the data, and the function that gets a file, to a graph with masks [M] or [M, K], or without
    masks where a split has to be drawn. The split and whether features are computed may decide which files are read."""
    num_splits: int = 1
    """Fixed splits over which results on this set are usually averaged."""
    reads_split: bool = False
    """Whether the masks of `read` are those of the given split."""
    files: tuple[RemoteFile, ...] = field(default=(), repr=False)
    class_names: tuple[str | int, ...] | None = None
    """The classes in order; None where they are numbers or in the files."""
    channels: int | None = None
    """Columns of the published features, where files with others are in use."""
    notes: tuple[Note, ...] = ()
    """Sentences that a reader of the scores should know."""


def _files(folder: str, url: str, *names: str) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(f"{folder}/{name}", f"{url}/{name}") for name in names)


def _geom_gcn_splits(folder: str, name: str) -> tuple[RemoteFile, ...]:
    return _files(folder, f"{GEOM_GCN}/splits", *(f"{name}_split_0.6_0.2_{i}.npz" for i in range(GEOM_GCN_SPLITS)))


def _planetoid(name: str, folder: str, description: str, class_names: tuple[str, ...] | None, *notes: Note) -> NamedSet:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    common = _files(f"planetoid/{folder}/raw", PLANETOID, *(f"ind.{name}.{part}" for part in parts))
    splits = _geom_gcn_splits(f"planetoid/{folder}/geom-gcn/raw", name)
    return NamedSet(
        name=name,
        description=description,
        splits="the public one with 20 training nodes a class, or 0 to 9 for geom-gcn's ten (48/32/20)",
        read=lambda data, fetch: readers.read_planetoid(folder, common, splits, split_number(data.split), fetch),
        files=common + splits,
        class_names=class_names,
        notes=notes,
    )


def _gnn_benchmark(dataset: str, folder: str, stem: str, description: str) -> NamedSet:
    collection = dataset.lower()
    files = _files(f"{collection}/{folder}/raw", GNN_BENCHMARK, f"{stem}.npz")
    split_file = f"splits/{collection}_{folder.lower()}_60_20_20.npz"
    return NamedSet(
        name=f"{collection}-{folder.lower()}",
        description=description,
        splits=f"60/20/20 from {split_file}, or drawn if that is not there",
        read=lambda data, fetch: readers.read_gnn_benchmark(dataset, folder, split_file, files[0], fetch),
        files=files,
    )


def _heterophilous(name: str, description: str) -> NamedSet:
    files = _files(f"heterophilous/{name}/raw", HETEROPHILOUS, f"{name}.npz")
    return NamedSet(
        name=name,
        description=description,
        splits="0 to 9 (50/25/25), 0 by default",
        num_splits=10,
        read=lambda data, fetch: readers.read_heterophilous(name, files[0], fetch),
        files=files,
    )


def _filtered(animal: str) -> NamedSet:
    files = _files("filtered", HETEROPHILOUS, f"{animal}_filtered.npz")
    return NamedSet(
        name=f"{animal}-filtered",
        description=f"Wikipedia pages on {animal}s that link to each other, by traffic, duplicates removed",
        splits="0 to 9, 0 by default",
        num_splits=10,
        read=lambda data, fetch: readers.read_filtered(files[0], fetch),
        files=files,
    )


def _mag(data: DataSettings, fetch: Fetch) -> HeteroData:
    computes_features = data.missing_features == "published" or data.features != "given"
    return readers.read_mag(MAG, None if computes_features else MAG_EMBEDDING, fetch)


ACTOR = (
    *_files("actor/raw", f"{GEOM_GCN}/new_data/film", "out1_node_feature_label.txt", "out1_graph_edges.txt"),
    *_geom_gcn_splits("actor/raw", "film"),
)
DBLP_FEATURES = ("features_0.npz", "features_1.npz", "features_2.npy")
DBLP_PARTS = ("adjM.npz", *DBLP_FEATURES, "labels.npy", "node_types.npy", "train_val_test_idx.npz")
DBLP = tuple(RemoteFile(f"dblp_hetero/raw/{part}", None) for part in DBLP_PARTS)
DBLP_ARCHIVE = RemoteFile("dblp_hetero/DBLP_processed.zip", f"{DROPBOX}/DBLP_processed.zip?dl=1")
ARXIV = RemoteFile("ogb/arxiv.zip", f"{OGB}/arxiv.zip")
MAG = RemoteFile("ogb/mag.zip", f"{OGB}/mag.zip")
MAG_EMBEDDING = RemoteFile("ogb/mag_metapath2vec_emb.zip", f"{PYG}/mag_metapath2vec_emb.zip")

# The files hold numbers. The names of Cora and CiteSeer follow from the sizes of their classes, which all differ;
# of PubMed public sources name types 1 and 2 in either order, so its classes stay numbers.
CORA_CLASSES = (
    *("Theory", "Reinforcement_Learning", "Genetic_Algorithms", "Neural_Networks"),
    *("Probabilistic_Methods", "Case_Based", "Rule_Learning"),
)
CITESEER_CLASSES = ("AI", "ML", "IR", "DB", "Agents", "HCI")

CITESEER_NOTE = Note(
    "papers-without-class",
    "15 papers of citeseer have no words and no known class; as in published work they count as class 'AI', "
    "which only geom-gcn's splits make use of.",
)

CATALOG: dict[str, NamedSet] = {
    entry.name: entry
    for entry in (
        NamedSet(
            name="digits",
            description="scikit-learn's handwritten digits, each with edges to its ten nearest, by digit; no download",
            splits="10 training and 30 validation nodes a class, drawn with the seed 0 or the one given",
            read=lambda data, fetch: read_digits(split_number(data.split)),
            reads_split=True,
        ),
        _planetoid("cora", "Cora", "machine learning papers that cite each other, by topic", CORA_CLASSES),
        _planetoid(
            "citeseer",
            "CiteSeer",
            "computer science papers that cite each other, by area",
            CITESEER_CLASSES,
            CITESEER_NOTE,
        ),
        _planetoid("pubmed", "PubMed", "papers on diabetes that cite each other, by type", None),
        _gnn_benchmark(
            "Amazon", "Photo", "amazon_electronics_photo", "Amazon photo products bought together, by category"
        ),
        _gnn_benchmark(
            "Amazon",
            "Computers",
            "amazon_electronics_computers",
            "Amazon computers products bought together, by category",
        ),
        _gnn_benchmark("Coauthor", "CS", "ms_academic_cs", "computer scientists who wrote together, by field of study"),
        NamedSet(
            name="actor",
            description="actors named on the same Wikipedia page, by the words of their own",
            splits="0 to 9 (48/32/20), 0 by default",
            num_splits=GEOM_GCN_SPLITS,
            read=lambda data, fetch: readers.read_actor(ACTOR, fetch),
            files=ACTOR,
        ),
        _heterophilous("tolokers", "crowd workers who did the same tasks, by whether they were banned"),
        _heterophilous("minesweeper", "cells of a minefield beside each other, by whether there is a mine"),
        _filtered("chameleon"),
        _filtered("squirrel"),
        NamedSet(
            name="ogbn-arxiv",
            description="computer science papers on arXiv that cite each other, by subject area",
            splits="OGB's, by year: to 2017, 2018, from 2019",
            read=lambda data, fetch: readers.read_arxiv(ARXIV, fetch),
            files=(ARXIV,),
            channels=128,
        ),
        NamedSet(
            name="dblp",
            description="computer scientists with their papers, terms and conferences, authors by research area",
            splits="MAGNN's: 400 training and 400 validation nodes",
            read=lambda data, fetch: readers.read_dblp(DBLP, DBLP_ARCHIVE, fetch),
            files=(*DBLP, DBLP_ARCHIVE),
        ),
        NamedSet(
            name="ogbn-mag",
            description="papers with their authors, institutions and fields, papers by venue",
            splits="OGB's, by year: to 2017, 2018, 2019",
            read=_mag,
            files=(MAG, MAG_EMBEDDING),
        ),
        NamedSet(
            name="oag-venue",
            description="computer science papers with their authors, institutions and fields, papers by venue",
            splits="its authors', by year, from the table of papers",
            read=lambda data, fetch: readers.read_oag_venue("oag-venue"),
        ),
    )
}
"""The named data sets, by name."""
