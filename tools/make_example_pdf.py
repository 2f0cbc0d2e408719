"""Write docs/examples/paper-mill.pdf from the text beside it: the file that the README's first call uses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fpdf import FPDF

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"


def main() -> None:
    pdf = FPDF(format=(148, 210))
    pdf.set_title("A day at the paper mill")
    pdf.set_creation_date(datetime(2026, 1, 1, tzinfo=UTC))  # the same text gives the same bytes
    pdf.set_margins(18, 18)
    pdf.set_auto_page_break(True, 18)
    pdf.add_page()
    for block in (EXAMPLES / "paper-mill.md").read_text(encoding="utf-8").split("\n\n"):
        level = len(block) - len(block.lstrip("#"))
        text = block.lstrip("# ").strip()
        if level:
            pdf.start_section(text, level - 1)
        pdf.set_font("times", "B" if level else "", {0: 11, 1: 20}.get(level, 14))
        pdf.multi_cell(0, 5.2 if not level else 9, text, new_x="LMARGIN", new_y="NEXT")
        pdf.ln(2.5)
    pdf.output(str(EXAMPLES / "paper-mill.pdf"))


if __name__ == "__main__":
    main()
