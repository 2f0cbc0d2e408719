"""Print docs/states.md from the tables of transitions, so that the page can't say anything else than the code."""

from __future__ import annotations

from collections.abc import Mapping

from common.task_state import DOCUMENT_TRANSITIONS, TASK_TRANSITIONS, Transition


def page() -> str:
    return "\n".join(
        [
            "# States",
            "",
            "Made by `tools/state_diagram.py` from `common/task_state.py`; a test holds the two together. Every arrow",
            "is one conditional UPDATE that names the states it may come from: who loses a race changes nothing.",
            "",
            *_section("Tasks", TASK_TRANSITIONS),
            *_section("Documents", DOCUMENT_TRANSITIONS),
        ]
    )


def _section(title: str, transitions: Mapping[str, Transition]) -> list[str]:
    arrows = [f"    {source.name} --> {t.target.name}: {t.name}" for t in transitions.values() for source in t.sources]
    rows = [
        f"| {t.name} | {', '.join(s.name for s in t.sources)} | {t.target.name} | {t.who} | {t.when} |"
        for t in transitions.values()
    ]
    head = ["| arrow | from | to | who | when |", "|---|---|---|---|---|"]
    return [f"## {title}", "", "```mermaid", "stateDiagram-v2", *arrows, "```", "", *head, *rows, ""]


if __name__ == "__main__":
    print(page(), end="")
