"""Which embedder the settings name: the packaged model, or an endpoint with its cache."""

from __future__ import annotations

from common.settings import EmbeddingSettings, Settings
from rag.utils.embedder import Embedder, PackagedEmbedder, endpoint_name
from rag.utils.embedding_cache import EmbeddingCache, Model


def open_embedder(settings: EmbeddingSettings) -> Embedder:
    """Raises SettingsError. An endpoint is not asked anything yet: it may be away when Pagemill starts."""
    if not settings.url:
        return PackagedEmbedder(settings)
    from rag.utils.endpoint_embedder import EndpointEmbedder  # with an HTTP client: only who needs one pays for it

    return EndpointEmbedder(settings)


def embedder_name(settings: EmbeddingSettings) -> str:
    """Its `name`, without the time that opening it takes."""
    return endpoint_name(settings) if settings.url else PackagedEmbedder.name


def embeds_where_parsed(settings: Settings) -> bool:
    """Whether parser processes give chunks their vectors: the packaged model needs nothing but a core, and the text is
    there."""
    return not settings.embedding.url and not settings.executor.max_embedders


def calls_at_once(settings: Settings) -> int:
    """How many calls an executor has under way: an endpoint is waited for, the packaged model needs a core."""
    if settings.embedding.url:
        return settings.embedding.max_concurrent_requests
    return max(1, settings.executor.max_embedders)


def open_cache(settings: Settings) -> EmbeddingCache | None:
    """Endpoints only: the packaged model is faster than a look at a file."""
    embedding = settings.embedding
    if not embedding.url or not embedding.cache_mb:
        return None
    model = Model(embedding.url, embedding.model, embedding.dimension)
    return EmbeddingCache(settings.data_dir / "cache" / "embeddings.db", embedding.cache_mb << 20, model)
