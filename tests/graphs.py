"""Small graphs to train on: every class in every split, features that tell the classes apart a little."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

SPLITS = ("train", "train", "val", "test", "")


def small_data(nodes: int = 40, classes: int = 3, channels: int = 5, seed: int = 0, **fields) -> Data:
    """A random graph as a user would give it: nodes of a class are alike and tend to be neighbors."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % classes
    x = torch.randn(nodes, channels, generator=generator)
    x[:, :classes] += 2 * torch.nn.functional.one_hot(y, classes).float()
    ends = torch.randint(0, nodes, (2, 3 * nodes), generator=generator)
    alike = (y[ends[0]] == y[ends[1]]) | (torch.rand(3 * nodes, generator=generator) < 0.3)
    part = (torch.arange(nodes) // classes) % len(SPLITS)
    masks = {f"{name}_mask": torch.tensor([SPLITS[p] == name for p in part]) for name in ("train", "val", "test")}
    hidden = torch.tensor([SPLITS[p] == "" for p in part])
    given = {"x": x, "y": y.masked_fill(hidden, -1), "edge_index": ends[:, alike], "name": "small", **masks}
    return Data(**{**given, **fields})


def table_folder(
    folder: Path, data: Data, ids: list | None = None, names: list | None = None, splits: bool = True
) -> Path:
    """The same graph as a folder of CSV tables."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = [f"n{i}" for i in range(data.num_nodes)] if ids is None else ids
    names = [f"class {c}" for c in range(int(data.y.max()) + 1)] if names is None else names
    table = pd.DataFrame({"id": ids, "label": [names[c] if c >= 0 else "" for c in data.y.tolist()]}, dtype=object)
    if splits:
        split = np.full(data.num_nodes, "", dtype=object)
        for name in ("train", "val", "test"):
            split[data[f"{name}_mask"].numpy()] = name
        table["split"] = split
    for column in range(data.x.size(1)):
        table[f"f{column}"] = data.x[:, column].numpy()
    table.to_csv(folder / "nodes.csv", index=False)
    source, target = data.edge_index.tolist()
    edges = pd.DataFrame({"source": [ids[i] for i in source], "target": [ids[i] for i in target]})
    edges.to_csv(folder / "edges.csv", index=False)
    return folder
