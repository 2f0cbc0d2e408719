"""The tokens of an endpoint's model, and how many it takes, decide where chunks end and what a range is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from api.db.services.task_plan import ModelTraits, PlannedFile, chunk_settings, plan_ranges
from common.settings import EmbeddingSettings, Settings, TaskSettings
from rag.parser.blocks import Profile, Unit
from rag.svr.parser_pool import Config, ParseJob, ParserPool

TEXT = " ".join(f"word{n}" for n in range(300))


def letters_file(folder: Path) -> str:
    """A tokenizer to which every character is a token."""
    tokenizer = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = Split(Regex("."), "isolated")
    tokenizer.save(str(folder / "letters.json"))
    return str(folder / "letters.json")


async def sizes(settings: Settings, path: Path, max_tokens: int) -> list[int]:
    async with ParserPool(Config.of(settings)) as pool:
        profile = await pool.prepare(path, path.name)
        chunking = chunk_settings("naive", {"chunk_token_num": 2048}, max_tokens)
        chunks = await pool.parse(path, ParseJob(profile, 0, profile.units, chunking), lambda done: None)
    return [chunk.tokens for chunk in chunks]


async def test_the_tokenizer_of_the_settings_counts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    endpoint = EmbeddingSettings(url="http://127.0.0.1:9/v1", model="m", tokenizer_file=letters_file(tmp_path))
    by_words = await sizes(Settings(), tmp_path / "a.txt", 2048)
    by_letters = await sizes(Settings(embedding=endpoint), tmp_path / "a.txt", 2048)
    assert sum(by_letters) > 1.2 * sum(by_words) > 600
    assert max(by_letters) <= 2048


async def test_no_chunk_is_longer_than_the_model_takes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    assert max(await sizes(Settings(), tmp_path / "a.txt", 100)) <= 100


def test_how_many_tokens_a_model_takes_is_part_of_the_digest() -> None:
    file = PlannedFile("f", "a.txt", "naive", {}, "m@OpenAI-API-Compatible", ModelTraits(0, max_tokens=2048))
    profile = Profile(kind="pdf", unit=Unit.PAGE, units=1)
    (wide,) = plan_ranges(file, profile, TaskSettings())
    (narrow,) = plan_ranges(replace(file, model=ModelTraits(0, max_tokens=512)), profile, TaskSettings())
    assert wide.digest != narrow.digest
