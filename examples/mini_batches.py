"""Trains in mini-batches of sampled neighbors."""

import argparse

import torch
import torch.nn.functional as F

import legnn
from legnn.graph import LabelGraph, sample_label_graph
from legnn.nn import SAGE

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=20)
epochs = parser.parse_args().epochs

torch.manual_seed(0)
data = legnn.load("digits")
train, x, y = data.train_mask.nonzero().flatten(), F.normalize(data.x), data.y
graph = LabelGraph.without_labels(data.adjacency, data.num_classes).show(train, y[train])
layers = torch.nn.ModuleList([SAGE(data.num_features, 64), SAGE(64, data.num_classes, update_labels=False)])
label_features = torch.nn.Parameter(0.1 * torch.randn(data.num_classes, data.num_features))
optimizer = torch.optim.Adam([label_features, *layers.parameters()], lr=0.01)


def predict(x, graph):
    """Returns logits of the whole graph, or of the seeds of a sampled one."""
    nodes, labels = layers[0](x, label_features, graph.layer(0))
    return layers[1](nodes.relu(), labels.relu(), graph.layer(1))[0]


for epoch in range(epochs):
    for step, seeds in enumerate(train[torch.randperm(len(train))].split(64)):
        # ten neighbors in the first layer, five in the second; a seed does not show its label in its own batch
        sample = sample_label_graph(graph, seeds, fanouts=(10, 5), key=(epoch, step))
        loss = F.cross_entropy(predict(x[sample.nodes], sample), y[seeds])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
correct = (predict(x, graph).argmax(1) == y)[data.test_mask]
print(f"test accuracy {correct.float().mean():.3f}")
