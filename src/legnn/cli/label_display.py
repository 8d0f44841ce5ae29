"""Tables of the commands about labels: labels that look wrong, nodes to label next, audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from legnn.cli.console import out, print_line, print_text, show_table
from legnn.errors import plural

if TYPE_CHECKING:
    import pandas as pd

    from legnn.labels.audit import Audit
    from legnn.labels.check import LabelCheck


def show_label_check(check: LabelCheck, most: int) -> None:
    """Prints the labels that are most likely wrong with the evidence, and how many are expected to be."""
    rows = [
        (
            *(row[name] for name in ("id", "label", "suggested", "split")),
            f"{row['score']:.3f}",
            f"{row['p_label']:.3f}, {row['p_suggested']:.3f}",
            f"{row['neighbors_label']:g}, {row['neighbors_suggested']:g} of {row['neighbors']:g}",
        )
        for row in check.table.head(most).to_dict("records")
    ]
    show_table(
        ("id", "label", "suggested", "split", "score", "p", "neighbors"),
        rows,
        left=4,
        title=f"{len(rows):,} of {len(check.table):,} labels, the most suspicious first",
        caption="p: of label and suggested class; neighbors: labeled ones with the label, the suggested class, of all",
    )
    share = check.expected_errors / max(len(check.table), 1)
    print_line(
        f"wrong labels: at most about {check.expected_errors:,.0f} ({100 * share:.1f} %); nodes that a model cannot "
        "tell and classes that overlap are among them"
    )


MOST_PROPOSED = 20
"""Most nodes in the table of those to label; a file has all."""


def show_next_labels(nodes: pd.DataFrame) -> None:
    """Prints the nodes to label next and the reasons for each."""
    columns = sorted(nodes.columns, key=lambda name: name not in ("id", "prediction"))
    rows = [
        [f"{row[name]:.3g}" if isinstance(row[name], float) else row[name] for name in columns]
        for row in nodes.head(MOST_PROPOSED).to_dict("records")
    ]
    show_table(
        columns,
        rows,
        left=2,
        title=f"{len(nodes):,} nodes to label, best first",
        caption="density, reach: of nodes that no label covers yet, those like it and those its label would travel to",
    )
    more = len(nodes) - MOST_PROPOSED
    if more > 0:
        print_line(f"and {more:,} more; --out FILE.csv has all")


def show_audit(audit: Audit) -> None:
    """Prints the method and the result of each check, then the warnings and leaks."""
    table = Table(title=f"audit of a run on {audit.data}", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("check", overflow="fold")
    table.add_column("method, and result", overflow="fold")
    table.add_column("how many", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    color = {"failed": "red", "warning": "yellow", "passed": "green", "not applicable": "dim"}
    for finding in audit.findings:
        count = f"{finding.count:,}" if finding.count else ""
        verdict = Text(finding.verdict, style=color[finding.verdict])
        table.add_row(finding.check, f"{finding.method}: {finding.detail}", count, verdict)
    out.print(table)
    for finding in (*audit.warnings, *audit.leaks):
        print_text(f"{finding.verdict}: {finding.check}: {finding.detail}")
    checks = sum(finding.verdict != "not applicable" for finding in audit.findings)
    summary = f"{plural(len(audit.leaks), 'leak')} and {plural(len(audit.warnings), 'warning')}"
    print_line(f"{summary} in {plural(checks, 'check')}")
