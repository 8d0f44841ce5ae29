"""Trains a GCN over a label graph in a training loop of your own."""

import argparse

import torch
import torch.nn.functional as F

import legnn
from legnn.graph import LabelGraph, select_training_nodes
from legnn.nn import GCN

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=100)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
data = legnn.load("digits")
train, x, y = data.train_mask.nonzero().flatten(), F.normalize(data.x), data.y
graph = LabelGraph.without_labels(data.adjacency, data.num_classes)
first, second = GCN(data.num_features, 64), GCN(64, data.num_classes, update_labels=False)
label_features = torch.nn.Parameter(0.1 * torch.randn(data.num_classes, data.num_features))
optimizer = torch.optim.Adam([label_features, *first.parameters(), *second.parameters()], lr=0.01)
generator = torch.Generator().manual_seed(0)


def predict(shown):
    """Returns logits of all nodes, where the nodes `shown` show their labels."""
    label_graph = graph.show(shown, y[shown])
    nodes, labels = first(x, label_features, label_graph)
    return second(nodes.relu(), labels.relu(), label_graph)[0]


for _epoch in range(epochs):
    predicted, shown = select_training_nodes(train, 0.5, generator)  # a predicted node never shows its label
    loss = F.cross_entropy(predict(shown)[predicted], y[predicted])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
correct = (predict(train).argmax(1) == y)[data.test_mask]
print(f"test accuracy {correct.float().mean():.3f}")
