"""Routes under /v1 that clients of RAGFlow 0.22 know: the same handlers as under /api/v1."""

from __future__ import annotations

from flask import Blueprint

from api.apps import files, ingest, models, system, users
from api.apps.auth import require_caller
from api.apps.envelope import expect_full

PREFIX = "/v1"

open_bp = Blueprint("older_open", __name__)
open_bp.before_request(expect_full)
open_bp.add_url_rule("/user/login", view_func=users.login, methods=["POST"])
open_bp.add_url_rule("/user/register", view_func=users.register, methods=["POST"])
open_bp.add_url_rule("/system/ping", view_func=system.ping)
open_bp.add_url_rule("/system/healthz", view_func=system.healthz)

bp = Blueprint("older", __name__)
bp.before_request(expect_full)
bp.before_request(require_caller)
bp.add_url_rule("/user/logout", view_func=users.logout)
bp.add_url_rule("/user/info", view_func=users.me)
bp.add_url_rule("/system/version", view_func=system.version)
bp.add_url_rule("/system/status", view_func=system.status)
bp.add_url_rule("/system/new_token", view_func=system.create_token, methods=["POST"])
bp.add_url_rule("/system/token_list", view_func=system.list_tokens)
bp.add_url_rule("/system/token/<path:token>", view_func=system.revoke_token, methods=["DELETE"])
bp.add_url_rule("/llm/list", view_func=models.llm_list)
bp.add_url_rule("/document/run", view_func=ingest.ingest, methods=["POST"])
bp.add_url_rule("/document/upload_info", "upload_info", files.not_available, methods=["POST"])
