"""Trains on a PyG `Data` and predicts its unlabeled nodes."""

import argparse

import torch
from torch_geometric.data import Data
from torch_geometric.utils import stochastic_blockmodel_graph

import legnn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=100)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
y = torch.arange(3).repeat_interleave(200)
edge_index = stochastic_blockmodel_graph([200, 200, 200], 0.002 + 0.018 * torch.eye(3))
x = torch.randn(600, 16) + torch.nn.functional.one_hot(y, 16)
known = y.clone()
known[torch.rand(600) < 0.5] = -1  # -1: unlabeled, to be predicted
data = Data(x=x, y=known, edge_index=edge_index)

run = legnn.train(data, backbone="gat", epochs=epochs)  # without masks, 60/20/20 of the labeled nodes are drawn
predictions = run.predict()
print(predictions.head())

correct = torch.from_numpy(predictions["prediction"].to_numpy().astype(int)) == y
print(f"accuracy on unlabeled nodes {correct[known < 0].float().mean():.3f}")
