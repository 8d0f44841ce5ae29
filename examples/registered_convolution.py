"""Registers a bipartite PyG convolution as a backbone and trains it over the label graph."""

import argparse

from torch_geometric.nn import GeneralConv

import legnn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=50)
epochs = parser.parse_args().epochs


def make_convolution(settings, channels, out_channels):
    """Returns one convolution; `channels` is a pair, of sources and of targets."""
    return GeneralConv(channels, out_channels)


# one convolution for each kind of edge: node to node, label to node, node to label
legnn.register_backbone("general", legnn.lifted(make_convolution))
run = legnn.train("digits", backbone="general", labels="enhanced", hidden=64, epochs=epochs)
print(run)
