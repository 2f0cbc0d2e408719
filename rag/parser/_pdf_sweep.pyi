from collections.abc import Callable

from rag.parser.page_lines import Line, Span
from rag.parser.pdf_measure import Made, Measures

def bind(
    addresses: tuple[int, ...], style_of: Callable[[bytes, int], int], line: type[Line], span: type[Span], /
) -> None: ...

class Measure:
    def __init__(
        self, textpage: int, left: float, top: float, width: float, height: float, least_gap: float, /
    ) -> None: ...
    def line(self, first: int, last: int, /) -> Measures: ...
    def lines(self, text: str, most: int, slow: Made, /) -> tuple[list[Line], int]: ...
