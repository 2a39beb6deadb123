"""A small Hub on 127.0.0.1 that speaks the wire protocol of huggingface.co, for real clients.

What `huggingface_hub` 2.x sends and reads (its `hf_api.py`, `_commit_api.py`, `lfs.py` and
`file_download.py`): whoami, creating repositories, the check of rights, preupload, git-LFS batch
and upload (basic and in parts), commits as ndjson, trees in pages, resolving with and without
redirect. It keeps everything in memory, checks every hash it is sent, and can be told to fail.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

from .accounts import Accounts
from .content import GIT_ATTRIBUTES, Fault, Repository, User
from .reading import Reading
from .requests import Route
from .uploading import Uploading

__all__ = ["LoopbackHub", "User", "loopback_hub"]

_NAME, _REVISION = r"([^/]+/[^/]+?)", r"([^/]+)"
_ROUTES: list[Route] = [
    (("GET",), "/api/whoami-v2", Accounts.whoami),
    (("POST",), "/api/repos/create", Accounts.create),
    (("POST",), "/api/validate-yaml", Accounts.validate_card),
    (("GET",), f"/api/models/{_NAME}/auth-check", Accounts.may_read),
    (("GET",), f"/api/models/{_NAME}/auth-check/write", Accounts.may_write),
    (("POST",), f"/api/models/{_NAME}/preupload/{_REVISION}", Uploading.preupload),
    (("POST",), f"/api/models/{_NAME}/commit/{_REVISION}", Uploading.commit),
    (("POST",), f"/api/models/{_NAME}/paths-info/{_REVISION}", Reading.paths_info),
    (("GET",), f"/api/models/{_NAME}/tree/{_REVISION}(/.*)?", Reading.tree),
    (("GET",), f"/api/models/{_NAME}/revision/{_REVISION}", Accounts.info),
    (("GET",), f"/api/models/{_NAME}", Accounts.info),
    (("POST",), rf"/{_NAME}\.git/info/lfs/objects/batch", Uploading.batch),
    (("POST",), rf"/{_NAME}\.git/info/lfs/objects/verify", Uploading.verify),
    (("POST",), r"/lfs/(\w+)/complete", Uploading.complete),
    (("PUT",), r"/lfs/(\w+)/(\d+)", Uploading.put_part),
    (("PUT",), r"/lfs/(\w+)", Uploading.put_object),
    (("GET", "HEAD"), f"/{_NAME}/resolve/{_REVISION}/(.+)", Reading.resolve),
    (("GET", "HEAD"), r"/cdn/(\w+)", Reading.download),
]


class LoopbackHub:
    """The server and what it holds.

    `requests` is every request as "METHOD path"; `uploaded` the hashes of LFS files it was sent.
    `part_size` makes it ask for uploads in parts; `page_size` is that of listed trees.
    `keeps_private` False makes repositories public whatever is asked for; `spoil` changes the
    files of a commit before they are kept, as a broken store would.
    """

    def __init__(self) -> None:
        self.users: dict[str, User] = {}
        self.repositories: dict[str, Repository] = {}
        self.lfs: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        self.uploaded: list[str] = []
        self.commit_headers: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.part_size: int | None = None
        self.page_size = 1000
        self.keeps_private = True
        self.has_write_check = True
        self.spoil: Callable[[dict[str, bytes]], dict[str, bytes]] = dict
        self.lock = threading.RLock()
        hub = self

        class Handler(Accounts, Uploading, Reading):
            routes = _ROUTES

        Handler.hub = hub
        # Large files are kept by another server: clients follow redirects to it without the token.
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
        self.url, self.storage = (
            f"http://127.0.0.1:{server.server_address[1]}" for server in self.servers
        )

    def add(self, name: str, files: dict[str, bytes], private: bool = False) -> Repository:
        """A repository that is there already."""
        repository = self.repositories[name] = Repository(private)
        repository.commit({".gitattributes": GIT_ATTRIBUTES, **files})
        for content in files.values():
            self.lfs[hashlib.sha256(content).hexdigest()] = content
        return repository

    def files(self, name: str) -> dict[str, bytes]:
        """What the newest commit holds."""
        return self.repositories[name].commits[-1][1]

    def fail(self, method: str, path: str, times: int = 1, **how: Any) -> None:
        """Let the next `times` requests go wrong whose path holds the regular expression."""
        self.faults.append(Fault(method, re.compile(path), times, **how))

    def seen(self, method: str, path: str) -> int:
        """How many requests matched."""
        return sum(bool(re.search(f"^{method} .*{path}", request)) for request in self.requests)


@contextmanager
def loopback_hub() -> Iterator[LoopbackHub]:
    """A running server."""
    hub = LoopbackHub()
    for server in hub.servers:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield hub
    finally:
        for server in hub.servers:
            server.shutdown()
            server.server_close()
