"""HTTP itself: reading, answering, failing on request, and the rights of who asks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote, urlsplit

from .content import Fault, Repository, User

Answer = tuple[int, Any, dict[str, str]]
Route = tuple[tuple[str, ...], str, Callable[..., Answer]]
"""Methods, regular expression of the path, and what answers."""


class RefusedError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, headers


class Request(BaseHTTPRequestHandler):
    """Reads requests, goes wrong where it is told to, and knows who asks for what."""

    hub: Any
    routes: list[Route] = []
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer waits 40 ms for an acknowledgement

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815  (names of http.server)

    def _serve(self) -> None:
        self.address = urlsplit(self.path)
        self.hub.requests.append(f"{self.command} {self.path}")
        fault = self._fault()
        if fault is not None:
            time.sleep(fault.delay)
            if fault.drop:
                self.rfile.read(int(self.headers.get("Content-Length", 0)) // 2)
                return self._cut()
        self.body = self._read()
        if fault is not None and fault.status is not None:
            return self._answer(fault.status, {"error": f"told to answer {fault.status}"})
        try:
            with self.hub.lock:
                answer = self._route()
        except RefusedError as refused:
            headers = dict(refused.headers)
            headers["X-Error-Message"] = refused.message
            if refused.code:
                headers["X-Error-Code"] = refused.code
            return self._answer(refused.status, {"error": refused.message}, headers)
        if fault is not None and fault.lose_answer:
            return self._cut()
        status, content, headers = answer
        return self._answer(status, content, headers)

    def _fault(self) -> Fault | None:
        for fault in self.hub.faults:
            if fault.times > 0 and fault.method == self.command and fault.path.search(self.path):
                fault.times -= 1
                return fault
        return None

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        found = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        headers = {"Content-Length": str(len(found)), **(headers or {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found)

    def _route(self) -> tuple[int, Any, dict[str, str]]:
        path = self.address.path
        if path == "/":
            return 200, b"", {}
        for method, pattern, handle in self.routes:
            found = re.fullmatch(pattern, path)
            if found and self.command in method:
                answer: tuple[int, Any, dict[str, str]] = handle(
                    self, *(unquote(part or "") for part in found.groups())
                )
                return answer
        raise RefusedError(404, f"no such page: {path}")

    # Who asks, and for what

    @property
    def user(self) -> User | None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token not in self.hub.users:
            raise RefusedError(401, "Invalid credentials in Authorization header")
        return self.hub.users.get(token)

    def known_user(self) -> User:
        if self.user is None:
            raise RefusedError(401, "Invalid username or password.")
        return self.user

    def readable(self, name: str) -> Repository:
        repository, user = self.hub.repositories.get(name), self.user
        owner = name.split("/")[0]
        hidden = repository is not None and repository.private
        if hidden and (user is None or owner not in (user.name, *user.organisations)):
            repository = None
        if repository is None:
            status = 401 if user is None else 404
            raise RefusedError(status, "Repository not found", "RepoNotFound")
        return repository

    def writable(self, name: str) -> Repository:
        repository, user = self.readable(name), self.known_user()
        if not user.may_write_to(name.split("/")[0]):
            raise RefusedError(
                403, "Forbidden: you must use a write token to upload to a repository."
            )
        return repository

    def tree_of(self, repository: Repository, revision: str) -> dict[str, bytes]:
        files = repository.tree(revision)
        if files is None:
            raise RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return files
