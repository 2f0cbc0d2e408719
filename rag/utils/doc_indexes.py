"""Opens the document index that the settings name: `index.url` decides which."""

from __future__ import annotations

from common.settings import Settings
from rag.utils.doc_index import DocIndex


def open_index(settings: Settings) -> DocIndex:
    """Connects to nothing yet. Each kind is imported where it is used: the client of a server takes a while."""
    if settings.embeds_index:
        from rag.utils.embedded_index import EmbeddedIndex

        return EmbeddedIndex(settings.index_dir, settings.index)
    from rag.utils.es_index import ElasticIndex

    return ElasticIndex(settings.index)
