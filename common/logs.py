"""How every process writes its log: one line per event on stderr, for people or as JSON."""

from __future__ import annotations

import json
import logging
import sys
import time

from common.settings import LogSettings


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logs(settings: LogSettings, role: str) -> None:
    """To be called once, at the start of a process. `role` stands in every line of text."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter(f"%(asctime)s {role:<12} %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(_JsonFormatter() if settings.format == "json" else text)
    logging.basicConfig(level=settings.level, handlers=[handler], force=True)
    logging.getLogger("pdfminer").setLevel(logging.ERROR)
