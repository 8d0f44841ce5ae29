"""Operations along the edges of a label graph, and those that follow a layer.

| function | equation | folder |
|---|---|---|
| `propagate_messages` | `t ∘ A (s ∘ x) + l ∘ Y labels + add` and `Yᵀ (c ∘ x) + add_to_labels` | `propagate` |
| `class_sum` | `Yᵀ x` | `propagate` |
| `label_gather` | the rows of `Y labels` that are not zero | `propagate` |
| `add_labels_`, or `label_messages` and `add_messages_` | `x + Y labels` | `propagate` |
| `project_entries` | `X P` for mostly-zero `X` | `propagate` |
| `attend` | as `propagate_messages`, with attention in place of `A` | `attention` |
| `apply_norm_act_dropout`, `drop` | `dropout(relu(norm(x)))`; `dropout(x)` | `norm_act_dropout` |
| `gather_rows` | rows of a matrix that may lie in the host's memory | `gather` |

The folder of an operation holds `reference.py` (plain PyTorch, the equation), `autograd.py` (the gradient written out,
over kernels), `numba_kernels.py` (CPU) and `triton_kernels.py` (CUDA). `legnn.ops.select` chooses among them.
"""

from legnn.ops.attention import attend
from legnn.ops.gather import HotRows, gather_rows
from legnn.ops.norm_act_dropout import apply_norm_act_dropout, drop
from legnn.ops.propagate import (
    LabelMessages,
    add_labels_,
    add_messages_,
    class_sum,
    label_gather,
    label_messages,
    project_entries,
    propagate_messages,
)
from legnn.ops.types import AttentionConfig, AttentionOutput, LabelGraphLike, Scales

__all__ = [
    "AttentionConfig",
    "AttentionOutput",
    "HotRows",
    "LabelGraphLike",
    "LabelMessages",
    "Scales",
    "add_labels_",
    "add_messages_",
    "apply_norm_act_dropout",
    "attend",
    "class_sum",
    "drop",
    "gather_rows",
    "label_gather",
    "label_messages",
    "project_entries",
    "propagate_messages",
]
