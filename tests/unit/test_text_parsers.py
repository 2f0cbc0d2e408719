"""Plain text, Markdown and CSV: encodings, blocks, and rows by range."""

# ruff: noqa: RUF001 - texts in many languages

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from common.errors import EmptyFile, UnreadableFile
from rag.parser import csv_rows, registry
from rag.parser.blocks import Block, BlockKind, Cell, Table, Unit
from rag.parser.text import MAX_CHARS

# Real sentences, and the encoding that files of their time and place are in.
_OLD = {
    "Hebrew without capitals of another script": (
        "cp1255",
        "מערכת עיבוד המסמכים קוראת כל עמוד ושומרת על הסדר.",
    ),
    "Chinese in one line": (
        "gb18030",
        "文档处理系统读取每一页的文字，并且保持阅读顺序与位置信息。",
    ),
    "French": (
        "cp1252",
        "Le bureau est fermé à cause de la grève. Les élèves reviendront après les vacances.",
    ),
    "French, short": ("cp1252", "fermé à cause de la grève"),
    "French, with signs": ("cp1252", "Réunion du comité : le président a déclaré que l’été serait très chaud."),
    "Finnish": (
        "cp1252",
        "Hyvää päivää! Tänään on kaunis sää, ja menemme järvelle uimaan. Äiti leipoo pöydän ääressä.",
    ),
    "Finnish, short": ("cp1252", "Pöytä on täynnä."),
    "Danish": (
        "cp1252",
        "Rødgrød med fløde er en dansk ret. Børnene løber på græsset, og færgen sejler over Øresund.",
    ),
    "German": (
        "cp1252",
        "Der Bürgermeister von Köln grüßt die Gäste. Die Straße ist für Fußgänger geöffnet.",
    ),
    "Spanish": ("cp1252", "El niño comió piñas en la montaña mañana. ¿Dónde está la estación? ¡Qué día tan bonito!"),
    "Swedish": (
        "cp1252",
        "Jag går på stranden när solen skiner. Räksmörgås är gott, och på sjön åker många båtar förbi ön.",
    ),
    "Portuguese": (
        "cp1252",
        "A reunião começa às dez horas da manhã. Não há razão para preocupação; os irmãos já voltaram.",
    ),
    "Italian": ("cp1252", "La città è bellissima, però c'è più traffico di lunedì. Perché non andiamo al caffè?"),
    "Icelandic": ("cp1252", "Það er gott veður í dag og við förum út að ganga. Þórður býr í Reykjavík og á þrjú börn."),
    "Norwegian": ("cp1252", "Jeg går på tur på fjellet. Ærlig talt er det gøy å være ute i sola."),
    "Dutch": (
        "cp1252",
        "Het café ligt aan de zee. De coördinatie van de reünie was geïmproviseerd, maar één ding niet.",
    ),
    "names": ("latin-1", "Café Müller, São Paulo, Málaga, Ångström, Zürich, Besançon, Tromsø, naïve façade, El Niño."),
    "rows": ("latin-1", "name;city\nAndré;Genève\nJürgen;Köln\nMaría;Cádiz\nBjørn;Tromsø\nÅsa;Malmö\nPäivi;Jyväskylä"),
    "English": (
        "cp1252",
        "The naïve waiter at the café said “hello” – it’s £5 or €6, isn’t it… as we know.",
    ),
    "English, short": ("cp1252", "plain words about a résumé"),
    "signs": ("cp1252", "This is ©2020 ACME®. It’s 20°C ± 1."),
    "Turkish": (
        "cp1254",
        "İstanbul'da hava bugün çok güzel. Çocuklar bahçede oynuyor, ağaçların altında şarkı söylüyorlar.",
    ),
    "Polish": ("cp1250", "Zażółć gęślą jaźń. Wczoraj poszliśmy do sklepu po świeże bułki i żółty ser."),
    "Polish, ISO": (
        "iso8859-2",
        "Wczoraj poszliśmy do sklepu po świeże bułki i żółty ser. Proszę zamknąć drzwi.",
    ),
    "Czech": (
        "cp1250",
        "Příliš žluťoučký kůň úpěl ďábelské ódy. Děti si hrají na zahradě a večer půjdou domů.",
    ),
    "Hungarian": (
        "cp1250",
        "Árvíztűrő tükörfúrógép. A gyerekek az iskolában tanulnak, és délután hazamennek a szüleikhez.",
    ),
    "Lithuanian": ("cp1257", "Ąžuolas auga prie upės, kurioje plaukia žuvys. Mokytoja skaito knygą."),
    "Latvian": ("cp1257", "Šodien ir skaista diena. Bērni spēlējas pagalmā, un māte gatavo pusdienas."),
    "Russian": (
        "cp1251",
        "Съешь же ещё этих мягких французских булок, да выпей чаю. Сегодня хорошая погода.",
    ),
    "Russian, KOI8": (
        "koi8-r",
        "Сегодня хорошая погода, и дети играют во дворе. Завтра обещают дождь.",
    ),
    "Russian, DOS": (
        "cp866",
        "Сегодня хорошая погода, и дети играют во дворе. Завтра обещают дождь.",
    ),
    "Ukrainian": (
        "cp1251",
        "Сьогодні гарна погода, і діти граються надворі. Завтра обіцяють дощ.",
    ),
    "Greek": (
        "cp1253",
        "Σήμερα ο καιρός είναι καλός και τα παιδιά παίζουν στην αυλή. Αύριο θα βρέξει.",
    ),
    "Hebrew": ("cp1255", "היום מזג האוויר יפה והילדים משחקים בחצר. מחר ירד גשם ולכן נישאר בבית ונקרא ספרים."),
    "Arabic": ("cp1256", "الطقس جميل اليوم والأطفال يلعبون في الحديقة. غدا سوف تمطر ولذلك سنبقى في البيت ونقرأ الكتب."),
    "Japanese": (
        "cp932",
        "今日は天気がいいので、子供たちは庭で遊んでいます。明日は雨が降るそうですから、家で本を読みましょう。",
    ),
    "Japanese, EUC": (
        "euc_jp",
        "今日は天気がいいので、子供たちは庭で遊んでいます。明日は雨が降るそうですから、家で本を読みましょう。",
    ),
    "Chinese": (
        "gb18030",
        "今天天气很好,孩子们在院子里玩耍。明天要下雨,所以我们会待在家里看书。这本书讲述了一个古老的故事。",
    ),
    "Chinese, Big5": (
        "big5",
        "今天天氣很好,孩子們在院子裡玩耍。明天要下雨,所以我們會待在家裡看書。這本書講述了一個古老的故事。",
    ),
    "Korean": (
        "cp949",
        "오늘은 날씨가 좋아서 아이들이 마당에서 놀고 있습니다. 내일은 비가 올 것 같으니 집에서 책을 읽읍시다.",
    ),
}


def _file(tmp_path: Path, content: bytes | str) -> Path:
    path = tmp_path / "blob"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _read(path: Path, name: str, first: int = 0, end: int | None = None) -> list[Block]:
    profile = registry.profile(path, name)
    return list(registry.read(path, profile, first, profile.units if end is None else end))


def test_a_text_is_one_unit_of_paragraphs(tmp_path: Path) -> None:
    path = _file(tmp_path, "First line\nsecond line\n\n\n  \nAnother paragraph\r\nends here")
    profile = registry.profile(path, "a.txt")
    assert (profile.unit, profile.units, profile.encoding) == (Unit.WHOLE, 1, "utf-8")
    assert [block.text for block in _read(path, "a.txt")] == [
        "First line\nsecond line",
        "Another paragraph\nends here",
    ]


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "latin-1", "cp1252"],
)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "Der Bürgermeister von Köln grüßt die Gäste. Près de la forêt, l'élève a mangé une crêpe."
    assert [block.text for block in _read(_file(tmp_path, text.encode(encoding)), "a.txt")] == [text]


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize(("encoding", "text"), _OLD.values(), ids=_OLD)
def test_old_encodings(tmp_path: Path, encoding: str, text: str, times: int) -> None:
    text = "\n".join([text] * times)
    assert "\n".join(block.text for block in _read(_file(tmp_path, text.encode(encoding)), "a.txt")) == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8"])
@pytest.mark.parametrize("text", ["fermé à cause de la grève", "Zażółć gęślą jaźń"])
def test_old_encodings_are_not_seen_in_new_ones(tmp_path: Path, encoding: str, text: str) -> None:
    assert _read(_file(tmp_path, text.encode(encoding)), "a.txt")[0].text == text


def test_the_odd_letter_may_come_late(tmp_path: Path) -> None:
    path = _file(tmp_path, b"plain words\n" * 20_000 + "déjà vu".encode("latin-1"))
    assert _read(path, "a.txt")[-1].text.endswith("déjà vu")


def test_one_bad_byte_does_not_spoil_utf8(tmp_path: Path) -> None:
    path = _file(tmp_path, "größer, schöner, weiter, über alle Flüsse".encode() + b" \xff end")
    assert _read(path, "a.txt")[0].text == "größer, schöner, weiter, über alle Flüsse \ufffd end"


def test_nuls_are_dropped(tmp_path: Path) -> None:
    (block,) = _read(_file(tmp_path, b"some words\x00 and some more of them\x07, all kept"), "a.txt")
    assert block.text == "some words and some more of them, all kept"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv"])
def test_white_space_is_empty(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmptyFile, match=f"{name} has no"):
        registry.profile(_file(tmp_path, b" \n\n \n"), name)


@pytest.mark.parametrize("unit", ["word ", "x"])
def test_one_line_of_many_megabytes(tmp_path: Path, unit: str) -> None:
    size = 8 << 20
    path = _file(tmp_path, unit * (size // len(unit)))
    profile = registry.profile(path, "a.txt")
    tracemalloc.start()
    seen = 0
    for block in registry.read(path, profile, 0, 1):
        assert len(block.text) <= MAX_CHARS
        seen += len(block.text.replace(" ", ""))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == size // len(unit) * len(unit.strip())
    assert peak < 2 << 20


def test_markdown_blocks(tmp_path: Path) -> None:
    source = """# Title #

Some words
on two lines.

Second
------
- one
  goes on
- two

1. three

| a | b |
|---|---|
| 1 | 2 |

```python
# not a heading

x = 1
```
### Last"""
    path = _file(tmp_path, source)
    assert registry.profile(path, "a.md").title == "Title"
    assert [(block.kind, block.level, block.text) for block in _read(path, "a.md")] == [
        (BlockKind.HEADING, 1, "Title"),
        (BlockKind.PARAGRAPH, 0, "Some words\non two lines."),
        (BlockKind.HEADING, 2, "Second"),
        (BlockKind.LIST_ITEM, 0, "- one\n  goes on"),
        (BlockKind.LIST_ITEM, 0, "- two"),
        (BlockKind.LIST_ITEM, 0, "1. three"),
        (BlockKind.TABLE, 0, "| a | b |\n|---|---|\n| 1 | 2 |"),
        (BlockKind.CODE, 0, "```python\n# not a heading\n\nx = 1\n```"),
        (BlockKind.HEADING, 3, "Last"),
    ]


def test_a_code_fence_that_never_ends(tmp_path: Path) -> None:
    blocks = _read(_file(tmp_path, "```\n" + "# line\n" * 10_000), "a.md")
    assert {block.kind for block in blocks} == {BlockKind.CODE}
    assert sum(block.text.count("# line") for block in blocks) == 10_000


def test_csv_rows(tmp_path: Path) -> None:
    path = _file(tmp_path, 'name,town,note\nAda,London,"first, ever"\n\nGrace,,"two\nlines"\n')
    profile = registry.profile(path, "a.csv")
    assert (profile.unit, profile.units, profile.columns) == (Unit.ROW, 2, ("name", "town", "note"))
    assert [(block.kind, block.page, block.text) for block in _read(path, "a.csv")] == [
        (BlockKind.TABLE, 1, "name: Ada; town: London; note: first, ever"),
        (BlockKind.TABLE, 2, "name: Grace; note: two lines"),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiters(tmp_path: Path, delimiter: str) -> None:
    rows = [["key", "value"], *([f"k{number}", f"some words {number}"] for number in range(20))]
    path = _file(tmp_path, "\n".join(delimiter.join(row) for row in rows))
    assert _read(path, "a.csv")[3].text == "key: k3; value: some words 3"


def test_csv_without_a_header(tmp_path: Path) -> None:
    blocks = _read(_file(tmp_path, "1,2,3\n4,5,6\n"), "a.csv")
    assert [block.text for block in blocks] == [
        "column 1: 1; column 2: 2; column 3: 3",
        "column 1: 4; column 2: 5; column 3: 6",
    ]


def test_csv_in_latin_1_with_more_cells_than_names(tmp_path: Path) -> None:
    path = _file(tmp_path, "ville,pays\nOrléans,France,été\nNîmes,France,hiver\n".encode("latin-1"))
    assert _read(path, "a.csv")[0].text == "ville: Orléans; pays: France; column 3: été"


def test_csv_ranges_in_any_order(tmp_path: Path) -> None:
    path = _file(tmp_path, "n,word\n" + "".join(f'{number},"row\n{number}"\n' for number in range(1, 301)))
    whole = _read(path, "a.csv")
    assert [block.page for block in whole] == list(range(1, 301))
    for first, end in ((0, 100), (100, 200), (250, 300), (50, 60), (200, 400)):
        assert _read(path, "a.csv", first, end) == whole[first:end]


def test_csv_with_an_open_quote_that_swallows_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, 'a,b\n1,"open\n' + "some,cells\n" * 500_000)
    for _ in range(2):
        with pytest.raises(UnreadableFile, match="is a quotation mark left open"):
            registry.profile(path, "a.csv")


def test_csv_rows_are_tables(tmp_path: Path) -> None:
    names = (Cell("name"), Cell("town"))
    blocks = _read(_file(tmp_path, "name,town\nAda,London\nGrace\nAlan,Wilmslow,1912\n"), "a.csv")
    assert [block.table for block in blocks] == [
        Table((names, (Cell("Ada"), Cell("London"))), header_rows=1),
        Table((names, (Cell("Grace"), Cell(""))), header_rows=1),
        Table(((*names, Cell("")), (Cell("Alan"), Cell("Wilmslow"), Cell("1912"))), header_rows=1),
    ]
    (unnamed, _) = _read(_file(tmp_path, "1,2\n3,4\n"), "a.csv")
    assert unnamed.table == Table(((Cell("1"), Cell("2")),))


def test_csv_with_very_many_cells_in_a_row(tmp_path: Path) -> None:
    blocks = _read(_file(tmp_path, ",".join(str(number) for number in range(2500)) + "\n"), "a.csv")
    assert [(block.page, len(block.table.rows[0])) for block in blocks if block.table] == [
        (1, 1000),
        (1, 1000),
        (1, 500),
    ]
    assert blocks[2].text.startswith("column 2001: 2000; column 2002: 2001; ")


def test_csv_with_a_line_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "MAX_ROW_CHARS", 1 << 20)
    path = _file(tmp_path, "a,b\n1,2\n" + "some,cells," * 200_000)
    with pytest.raises(UnreadableFile, match="line 3 makes a row of more than 1,048,576 characters"):
        registry.profile(path, "a.csv")
    path = _file(tmp_path, "a,b\n1,2\n" + '"x\n",' * 400_000)
    with pytest.raises(UnreadableFile, match="makes a row of more than 1,048,576 characters"):
        registry.profile(path, "a.csv")


def test_csv_with_nuls(tmp_path: Path) -> None:
    path = _file(tmp_path, b"name,town\n" + b"Ada,Lon\x00don of the many bridges\n" * 10)
    assert _read(path, "a.csv")[9].text == "name: Ada; town: London of the many bridges"


def test_csv_takes_little_memory(tmp_path: Path) -> None:
    path = _file(tmp_path, "n,word\n" + "".join(f"{number},{'some words ' * 80}\n" for number in range(5000)))
    tracemalloc.start()
    profile = registry.profile(path, "a.csv")
    count = sum(1 for _ in registry.read(path, profile, 0, profile.units))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (count, profile.units) == (5000, 5000)
    assert peak < 3 << 20 < path.stat().st_size
