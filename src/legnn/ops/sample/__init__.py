"""Neighbor sampling: uniform, without replacement, at most `fanout` edges of each row.

Which edges are drawn is a hash of a key, the row and the position, as dropout masks are: the same on every device and
for every distribution of the seeds over processes, and a checkpoint has no state of it. `reference` is plain PyTorch,
and `cpu` and `gpu` draw the same edges; the three differ in how they number the nodes that are not seeds.

Each has a function `draw_sample(view, seeds, options, key, number)`, which starts at `seeds`, int64 `[B]`,
each once. From the last layer to the first, it draws a `DrawnLayer` for every node so far and for every label that a
layer drawn before reads; it returns these and the `DrawnNodes`. `number` `[M]` is scratch memory, all zeros before and
after.
"""

from legnn.ops.sample.types import DrawnLayer, DrawnNodes, Fanout, SamplingOptions, SamplingView

__all__ = ["DrawnLayer", "DrawnNodes", "Fanout", "SamplingOptions", "SamplingView"]
