"""Neighbor sampling: uniform, without replacement, at most `fanout` edges of each row.

Which edges are drawn is a hash of a key, the row and the position, as dropout masks are: the same on every device and
for every distribution of the seeds over processes, and a checkpoint has no state of it. `reference` is plain PyTorch,
and `cpu` and `gpu` draw the same edges; the three differ in how they number the nodes that are not seeds.

Each has a class `Sampler`, which draws one sample, layer by layer, from the last layer to the first:

- `Sampler(view, seeds, number)` starts at `seeds`, int64 `[B]`, each once; `number` `[M]` is scratch memory, all zeros;
- `draw_layer(fanout, key, edges=…)` returns the `DrawnLayer` of every node so far and of every label that a layer drawn
  before reads;
- `finish()` returns the `DrawnNodes` of the sample, and leaves the scratch memory all zeros.
"""

from legnn.ops.sample.types import DrawnLayer, DrawnNodes, Fanout, SamplingView

__all__ = ["DrawnLayer", "DrawnNodes", "Fanout", "SamplingView"]
