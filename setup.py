"""What pyproject.toml can't say: the pieces that are compiled, where there is a compiler. All works without them."""

from setuptools import Extension, setup

# Not rounded otherwise than Python does, so that both ways give the same answers to the last bit.
_EXACT = ["-O2", "-ffp-contract=off"]

setup(
    ext_modules=[
        Extension("rag.parser._pdf_sweep", ["rag/parser/pdf_sweep.c"], extra_compile_args=_EXACT, optional=True),
        Extension("rag.parser._line_runs", ["rag/parser/line_runs.c"], extra_compile_args=_EXACT, optional=True),
        Extension("rag.flow._word_counts", ["rag/flow/word_counts.c"], extra_compile_args=_EXACT, optional=True),
    ]
)
