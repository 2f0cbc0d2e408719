"""The chunk methods in plain words: what each does with a document, and what it is good for. Their pictures are
templates/pictures/<key>.svg; what they really do is rag/flow's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChunkMethodText:
    key: str
    name: str
    does: str
    good_for: str
    has_size: bool = True


METHODS = (
    ChunkMethodText(
        "naive", "General", "Packs paragraphs into chunks of about the same size, page by page.", "Most documents."
    ),
    ChunkMethodText(
        "manual",
        "Manual",
        "A chunk for each section, with the way of headings to it.",
        "Manuals with numbered sections.",
    ),
    ChunkMethodText("paper", "Paper", "Keeps the abstract whole, then goes section by section.", "Research papers."),
    ChunkMethodText("book", "Book", "Follows chapters and their parts.", "Books and long reports."),
    ChunkMethodText("laws", "Laws", "A chunk for each article or clause.", "Laws, contracts, terms."),
    ChunkMethodText(
        "qa", "Questions and answers", "Pairs each question with its answer.", "FAQs; sheets with two columns.", False
    ),
    ChunkMethodText(
        "table",
        "Table",
        "A chunk for each row, with the names of its columns.",
        "Sheets, CSV, lists of records.",
        False,
    ),
    ChunkMethodText(
        "presentation", "Presentation", "A chunk for each slide or page, with its picture.", "Slides.", False
    ),
    ChunkMethodText("one", "One", "The whole document as one chunk.", "Short notes, letters, recipes.", False),
    ChunkMethodText("picture", "Picture", "Reads the text in each picture.", "Photos and scans.", False),
    ChunkMethodText("email", "E-mail", "Head, text and attachments of each message.", "Mails and mailboxes.", False),
    ChunkMethodText("resume", "Résumé", "Sections of a person's career.", "CVs and résumés."),
    ChunkMethodText("tag", "Tags", "Descriptions with the tags that go with them.", "A set of tags for others.", False),
)
NAMES = {method.key: method.name for method in METHODS} | {"audio": "Audio", "knowledge_graph": "Graph"}
