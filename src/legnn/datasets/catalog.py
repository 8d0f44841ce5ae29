"""The catalog of named data sets: description, files and reader of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from torch_geometric.data import Data, HeteroData
from torch_geometric.datasets import Amazon, Coauthor

from legnn.datasets import readers
from legnn.datasets.download import RemoteFile

PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
GNN_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
HETEROPHILOUS = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"
PYG = "https://data.pyg.org/datasets"
DBLP = "https://www.dropbox.com/s/yh4grpeks87ugr2/DBLP_processed.zip?dl=1"


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A data set that can be loaded by name."""

    name: str
    """The name to give `load`."""
    about: str
    """Description of nodes, edges and classes."""
    splits: str
    """Values of `split`, and the default."""
    read: Callable[[int | None], Data | HeteroData]
    """From the number of a split (None for the default) to a graph, with masks [M] or [M, K], or without masks where a
    split has to be drawn."""
    reads_split: bool = False
    """Whether the masks of `read` are those of the given split."""
    files: tuple[RemoteFile, ...] = field(default=(), repr=False)
    """Files, in the order of download."""
    class_names: tuple[str | int, ...] | None = None
    """The classes in order; None where they are numbers or in the files."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader of the scores should know."""


def _planetoid(
    name: str, folder: str, about: str, class_names: tuple[str, ...] | None, notes: tuple[str, ...] = ()
) -> NamedSet:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    common = tuple(
        RemoteFile(f"planetoid/{folder}/raw/ind.{name}.{part}", f"{PLANETOID}/ind.{name}.{part}") for part in parts
    )
    split_names = [f"{name}_split_0.6_0.2_{i}.npz" for i in range(readers.GEOM_GCN_SPLITS)]
    splits = tuple(
        RemoteFile(f"planetoid/{folder}/geom-gcn/raw/{split}", f"{GEOM_GCN}/splits/{split}") for split in split_names
    )
    return NamedSet(
        name=name,
        about=about,
        splits="the public one with 20 training nodes a class, or 0 to 9 for geom-gcn's ten (48/32/20)",
        read=partial(readers.read_planetoid, folder, common, splits),
        files=common + splits,
        class_names=class_names,
        notes=notes,
    )


def _gnn_benchmark(dataset: type[Amazon] | type[Coauthor], folder: str, stem: str, about: str) -> NamedSet:
    collection = dataset.__name__.lower()
    file = RemoteFile(f"{collection}/{folder}/raw/{stem}.npz", f"{GNN_BENCHMARK}/{stem}.npz")
    split_file = f"splits/{collection}_{folder.lower()}_60_20_20.npz"
    return NamedSet(
        name=f"{collection}-{folder.lower()}",
        about=about,
        splits=f"60/20/20 from {split_file}, or drawn if that is not there",
        read=lambda split: readers.read_gnn_benchmark(lambda root: dataset(root, folder), folder, file, split_file),
        files=(file,),
    )


def _heterophilous(name: str, about: str) -> NamedSet:
    file = RemoteFile(f"heterophilous/{name}/raw/{name}.npz", f"{HETEROPHILOUS}/{name}.npz")
    return NamedSet(
        name=name,
        about=about,
        splits="0 to 9 (50/25/25), 0 by default",
        read=lambda split: readers.read_heterophilous(name, file),
        files=(file,),
    )


def _filtered(animal: str) -> NamedSet:
    npz = f"{animal}_filtered.npz"
    file = RemoteFile(f"filtered/{npz}", f"{HETEROPHILOUS}/{npz}")
    return NamedSet(
        name=f"{animal}-filtered",
        about=f"Wikipedia pages on {animal}s that link to each other, by traffic, duplicates removed",
        splits="0 to 9, 0 by default",
        read=lambda split: readers.read_filtered(file),
        files=(file,),
    )


def _actor() -> NamedSet:
    tables = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    split_names = [f"film_split_0.6_0.2_{i}.npz" for i in range(readers.GEOM_GCN_SPLITS)]
    files = (
        *(RemoteFile(f"actor/raw/{table}", f"{GEOM_GCN}/new_data/film/{table}") for table in tables),
        *(RemoteFile(f"actor/raw/{split}", f"{GEOM_GCN}/splits/{split}") for split in split_names),
    )
    return NamedSet(
        name="actor",
        about="actors named on the same Wikipedia page, by the words of their own",
        splits="0 to 9 (48/32/20), 0 by default",
        read=lambda split: readers.read_actor(files),
        files=files,
    )


def _dblp() -> NamedSet:
    features = ("features_0.npz", "features_1.npz", "features_2.npy")
    parts = ("adjM.npz", *features, "labels.npy", "node_types.npy", "train_val_test_idx.npz")
    files = tuple(RemoteFile(f"dblp_hetero/raw/{part}", None) for part in parts)
    archive = RemoteFile("dblp_hetero/DBLP_processed.zip", DBLP)
    return NamedSet(
        name="dblp",
        about="computer scientists with their papers, terms and conferences, authors by research area",
        splits="MAGNN's: 400 training and 400 validation nodes",
        read=lambda split: readers.read_dblp(files, archive),
        files=(*files, archive),
    )


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

CITESEER_NOTE = (
    "15 papers of citeseer have no words and no known class; as in published work they count as class 'AI', "
    "which only geom-gcn's splits make use of."
)

CATALOG: dict[str, NamedSet] = {
    entry.name: entry
    for entry in (
        NamedSet(
            name="digits",
            about="scikit-learn's handwritten digits, each joined to its ten nearest, by digit; nothing to download",
            splits="10 training and 30 validation nodes a class, drawn with the seed 0 or the one given",
            read=readers.read_digits,
            reads_split=True,
        ),
        _planetoid("cora", "Cora", "machine learning papers that cite each other, by topic", CORA_CLASSES),
        _planetoid(
            "citeseer",
            "CiteSeer",
            "computer science papers that cite each other, by area",
            CITESEER_CLASSES,
            (CITESEER_NOTE,),
        ),
        _planetoid("pubmed", "PubMed", "papers on diabetes that cite each other, by type", None),
        _gnn_benchmark(
            Amazon, "Photo", "amazon_electronics_photo", "Amazon photo products bought together, by category"
        ),
        _gnn_benchmark(
            Amazon,
            "Computers",
            "amazon_electronics_computers",
            "Amazon computers products bought together, by category",
        ),
        _gnn_benchmark(Coauthor, "CS", "ms_academic_cs", "computer scientists who wrote together, by field of study"),
        _actor(),
        _heterophilous("tolokers", "crowd workers who did the same tasks, by whether they were banned"),
        _heterophilous("minesweeper", "cells of a minefield beside each other, by whether there is a mine"),
        _filtered("chameleon"),
        _filtered("squirrel"),
        NamedSet(
            name="ogbn-arxiv",
            about="computer science papers on arXiv that cite each other, by subject area",
            splits="OGB's, by year: to 2017, 2018, from 2019",
            read=lambda split: readers.read_arxiv(ARXIV),
            files=(ARXIV,),
        ),
        _dblp(),
        NamedSet(
            name="ogbn-mag",
            about="papers with their authors, institutions and fields, papers by venue",
            splits="OGB's, by year: to 2017, 2018, 2019",
            read=lambda split: readers.read_mag(MAG, MAG_EMBEDDING),
            files=(MAG, MAG_EMBEDDING),
        ),
        NamedSet(
            name="oag-venue",
            about="computer science papers with their authors, institutions and fields, papers by venue",
            splits="its authors', by year, from the table of papers",
            read=lambda split: readers.read_oag_venue("oag-venue"),
        ),
    )
}
"""The named data sets, by name."""
