"""A schema registry of one's own: what Confluent's API answers about schemas by their ids, and by subjects and versions."""

from __future__ import annotations

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import fastavro


def framed(number: int, schema: Any = None, value: Any = None) -> bytes:
    """A part of a record: zero, the schema's id, and the value, written by fastavro, where a schema is given."""
    data = io.BytesIO()
    if schema is not None:
        fastavro.schemaless_writer(data, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + data.getvalue()


class RegistryServer:
    """A context; url: where it answers. user, password: which it asks for."""

    def __init__(self, user: str = "", password: str = "") -> None:
        given = base64.b64encode(f"{user}:{password}".encode()).decode()
        answers: dict[str, dict[str, Any]] = {"/other/schemas/ids/1": {"page": "another's"}}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = not user or self.headers["Authorization"] == f"Basic {given}"
                found = answers.get(unquote(self.path))
                number = self.path.rpartition("/")[2]
                told = found or {"error_code": 40403, "message": f"Schema {number} not found"}
                self.send_response(401 if not allowed else 200 if found else 404)
                self.end_headers()
                self.wfile.write(json.dumps(told if allowed else {}).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._answers = answers
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def register(
        self, schema: Any, *, kind: str | None = None, subject: str | None = None, version: int = 1, references: Any = None
    ) -> int:
        """The id of the schema. kind: None is Avro, which the answer does not name."""
        number = len(self._answers)
        answer: dict[str, Any] = {"schema": json.dumps(schema)} | ({"schemaType": kind} if kind else {})
        answer |= {"references": references} if references else {}
        self._answers[f"/schemas/ids/{number}"] = answer
        if subject:
            self._answers[f"/subjects/{subject}/versions/{version}"] = {
                "subject": subject,
                "version": version,
                "id": number,
                **answer,
            }
        return number

    def __enter__(self) -> RegistryServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
