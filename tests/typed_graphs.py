"""Small graphs of several node types: papers have classes and features, authors features or none, tags never any."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tests.graphs import small_data
from torch_geometric.data import HeteroData

from legnn.data.node_types import NodeTypes

AUTHORS, TAGS = 12, 6

CHAIN = {
    ("author", "writes", "paper"): [(0, 0), (1, 1), (0, 2)],
    ("paper", "has", "field"): [(0, 0), (1, 0)],
    ("author", "at", "institute"): [(0, 0), (1, 0)],
}
"""Relations of a few nodes."""


def small_hetero(author_channels: int | None = 3, seed: int = 0, **fields) -> HeteroData:
    """40 papers that cite each other, have authors and tags. `fields` replace those of the papers."""
    papers = small_data(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    graph = HeteroData(name="small")
    # authors come first, so that no paper's number is its row among all nodes
    graph["author"].num_nodes = AUTHORS
    if author_channels is not None:
        graph["author"].x = torch.randn(AUTHORS, author_channels, generator=generator)
    given = {name: papers[name] for name in ("x", "y", "train_mask", "val_mask", "test_mask")}
    for name, value in {**given, **fields}.items():
        graph["paper"][name] = value
    graph["paper", "cites", "paper"].edge_index = papers.edge_index
    writes = torch.stack([torch.randperm(40, generator=generator) % AUTHORS, torch.arange(40)])
    graph["author", "writes", "paper"].edge_index = writes
    return graph


def with_tags(graph: HeteroData) -> HeteroData:
    """The same with tags, which have no features."""
    graph["tag"].num_nodes = TAGS
    graph["paper", "tagged", "tag"].edge_index = torch.stack([torch.arange(40), torch.arange(40) % TAGS])
    return graph


def typed_folder(folder: Path, graph: HeteroData, ids: list | None = None, suffix: str = "csv") -> Path:
    """The same graph as a folder of tables; types without features have no node table."""
    (folder / "nodes").mkdir(parents=True, exist_ok=True)
    (folder / "edges").mkdir(exist_ok=True)
    ids = ids or [f"p{i}" for i in range(40)]
    names = {"paper": ids, "author": [f"a{i}" for i in range(AUTHORS)], "tag": [f"t{i}" for i in range(TAGS)]}
    split = np.full(40, "", dtype=object)
    for part in ("train", "val", "test"):
        split[graph["paper"][f"{part}_mask"].numpy()] = part
    labels = [f"class {c}" if c >= 0 else None for c in graph["paper"].y.tolist()]
    for kind in ("paper", "author"):
        if "x" in graph[kind]:
            table = pd.DataFrame({"id": names[kind]})
            if kind == "paper":
                table["label"], table["split"] = labels, split
            for column in range(graph[kind].x.size(1)):
                table[f"f{column}"] = graph[kind].x[:, column].numpy()
            write(table, folder / "nodes" / f"{kind}.{suffix}")
    for source, relation, target in graph.edge_types:
        ends = graph[source, relation, target].edge_index.tolist()
        table = pd.DataFrame(
            {"source": [names[source][i] for i in ends[0]], "target": [names[target][i] for i in ends[1]]}
        )
        write(table, folder / "edges" / f"{source}__{relation}__{target}.{suffix}")
    return folder


def write(table: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False)


def typed_edges(
    relations: dict[tuple[str, str, str], list[tuple[int, int]]], **sizes: int
) -> tuple[NodeTypes, torch.Tensor]:
    """The types of nodes that are numbered type after type, papers to be predicted, and the edges between them."""
    count = torch.tensor(list(sizes.values()))
    first = dict(zip(sizes, (count.cumsum(0) - count).tolist(), strict=True))
    ends = [(first[s] + i, first[t] + j) for (s, _, t), edges in relations.items() for i, j in edges]
    node_type = torch.arange(len(sizes)).repeat_interleave(count)
    types = NodeTypes(names=list(sizes), node_type=node_type, target="paper", columns=[])
    return types, torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T


def small_mag(seed: int = 0) -> HeteroData:
    """The types and relations of ogbn-mag: papers have features and classes, the other types neither."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {"author": 9, "field_of_study": 4, "institution": 3, "paper": 20}
    graph = HeteroData(name="small mag")
    for kind, size in sizes.items():
        graph[kind].num_nodes = size
    for source, name, target in (
        ("author", "affiliated_with", "institution"),
        ("author", "writes", "paper"),
        ("paper", "cites", "paper"),
        ("paper", "has_topic", "field_of_study"),
    ):
        ends = [torch.randint(0, sizes[kind], (40,), generator=generator) for kind in (source, target)]
        graph[source, name, target].edge_index = torch.stack(ends)
    part = torch.arange(20) // 2 % 5
    masks = {f"{name}_mask": part == number for number, name in enumerate(("train", "val", "test"))}
    graph["paper"].update({"x": torch.randn(20, 4, generator=generator), "y": torch.arange(20) % 2, **masks})
    return graph
