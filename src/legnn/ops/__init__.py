"""Operations along the edges of a label graph, and those that follow a layer.

| function | equation | folder |
|---|---|---|
| `propagate_messages` | `t ∘ A (s ∘ x) + l ∘ Y labels + add` and `Yᵀ (c ∘ x)` | `propagate` |
| `class_sum` | `Yᵀ x` | `propagate` |
| `label_gather` | the rows of `Y labels` that are not zero | `propagate` |
| `add_labels_` | `x + Y labels` | `propagate` |
| `project_entries` | `X P` for mostly-zero `X` | `propagate` |
| `attend` | as `propagate_messages`, with attention in place of `A` | `attention` |
| `apply_norm_act_dropout`, `drop` | `dropout(relu(norm(x)))`; `dropout(x)` | `norm_act_dropout` |
| `scale_rows`, `split_scores`, `apply_norm` | plain PyTorch over the rows of a matrix | `rows` |
| `gather_rows` | rows of a matrix that may lie in the host's memory | `gather` |

The package of an operation holds its gradient, written out, in `__init__.py`, and `reference.py` (plain PyTorch, the
equation), `cpu.py` (numba) and `gpu.py` (Triton). `legnn.ops.backend` selects among them.
"""

from legnn.ops.attention import attend
from legnn.ops.gather import FeatureCache, gather_rows
from legnn.ops.norm_act_dropout import apply_norm_act_dropout, drop
from legnn.ops.propagate import add_labels_, class_sum, label_gather, project_entries, propagate_messages
from legnn.ops.rows import apply_norm, scale_rows, split_scores
from legnn.ops.types import AttentionConfig, AttentionOutput, LabelGraphLike, Scales

__all__ = [
    "AttentionConfig",
    "AttentionOutput",
    "FeatureCache",
    "LabelGraphLike",
    "Scales",
    "add_labels_",
    "apply_norm",
    "apply_norm_act_dropout",
    "attend",
    "class_sum",
    "drop",
    "gather_rows",
    "label_gather",
    "project_entries",
    "propagate_messages",
    "scale_rows",
    "split_scores",
]
