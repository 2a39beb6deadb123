"""A small Hub on 127.0.0.1 that speaks the wire protocol of huggingface.co, for real clients.

What `huggingface_hub` 2.x sends and reads (its `hf_api.py`, `_commit_api.py`, `lfs.py` and
`file_download.py`): whoami, creating repositories, the check of rights, preupload, git-LFS batch
and upload (basic and in parts), commits as ndjson, trees in pages, resolving with and without
redirect. It keeps everything in memory, checks every hash it is sent, and can be told to fail.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import yaml

LFS_NAMES = re.compile(r".*\.(safetensors|bin|joblib|onnx|png|model)|.*tokenizer\.json")
GIT_ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True)
class User:
    """Whose token it is, and what it may do."""

    name: str
    role: str = "write"  # or "read"
    organisations: tuple[str, ...] = ()

    def may_write_to(self, owner: str) -> bool:
        return self.role == "write" and owner in (self.name, *self.organisations)


@dataclass
class Repository:
    """A model repository: its commits, each a tree of path -> content."""

    private: bool
    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)

    @property
    def head(self) -> str:
        return self.commits[-1][0]

    def commit(self, files: dict[str, bytes]) -> str:
        digest = hashlib.sha1(f"{len(self.commits)} {sorted(files)}".encode())
        for content in files.values():
            digest.update(content)
        self.commits.append((digest.hexdigest(), files))
        return self.head

    def tree(self, revision: str) -> dict[str, bytes] | None:
        if revision in ("main", ""):
            return self.commits[-1][1]
        return next((files for oid, files in self.commits if oid == revision), None)


@dataclass
class Fault:
    """How the next requests that match go wrong.

    `status`: answer with it; `drop`: read half of what is sent and cut the connection;
    `lose_answer`: do what is asked, then cut the connection; `delay`: seconds before the answer.
    """

    method: str
    path: re.Pattern[str]
    times: int
    status: int | None = None
    drop: bool = False
    lose_answer: bool = False
    delay: float = 0.0


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

        class Handler(_Handler):
            pass

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


class _RefusedError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, headers


def git_hash(content: bytes) -> str:
    """SHA-1 of a git blob."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_lfs(path: str, size: int) -> bool:
    return size > 0 and (LFS_NAMES.fullmatch(path) is not None or size > 10 * 2**20)


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
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
        except _RefusedError as refused:
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
        for method, pattern, handle in _ROUTES:
            found = re.fullmatch(pattern, path)
            if found and self.command in method:
                answer: tuple[int, Any, dict[str, str]] = handle(
                    self, *(unquote(part or "") for part in found.groups())
                )
                return answer
        raise _RefusedError(404, f"no such page: {path}")

    # Who asks, and for what

    @property
    def user(self) -> User | None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token not in self.hub.users:
            raise _RefusedError(401, "Invalid credentials in Authorization header")
        return self.hub.users.get(token)

    def _known_user(self) -> User:
        if self.user is None:
            raise _RefusedError(401, "Invalid username or password.")
        return self.user

    def _readable(self, name: str) -> Repository:
        repository, user = self.hub.repositories.get(name), self.user
        owner = name.split("/")[0]
        hidden = repository is not None and repository.private
        if hidden and (user is None or owner not in (user.name, *user.organisations)):
            repository = None
        if repository is None:
            status = 401 if user is None else 404
            raise _RefusedError(status, "Repository not found", "RepoNotFound")
        return repository

    def _writable(self, name: str) -> Repository:
        repository, user = self._readable(name), self._known_user()
        if not user.may_write_to(name.split("/")[0]):
            raise _RefusedError(
                403, "Forbidden: you must use a write token to upload to a repository."
            )
        return repository

    def _tree(self, repository: Repository, revision: str) -> dict[str, bytes]:
        files = repository.tree(revision)
        if files is None:
            raise _RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return files

    # Accounts and repositories

    def whoami(self) -> tuple[int, Any, dict[str, str]]:
        user = self._known_user()
        organisations = [
            {"type": "org", "name": name, "roleInOrg": "write"} for name in user.organisations
        ]
        token = {"displayName": "test", "role": user.role}
        auth = {"type": "access_token", "accessToken": token}
        return 200, {"type": "user", "name": user.name, "orgs": organisations, "auth": auth}, {}

    def create(self) -> tuple[int, Any, dict[str, str]]:
        asked, user = json.loads(self.body), self._known_user()
        owner = asked.get("organization") or user.name
        name = f"{owner}/{asked['name']}"
        if not user.may_write_to(owner):
            raise _RefusedError(
                403,
                f'You don\'t have the rights to create a model under the namespace "{owner}"',
            )
        if name in self.hub.repositories:
            url = f"{self.hub.url}/{name}"
            return 409, {"error": "You already created this model repo", "url": url}, {}
        private = asked.get("private", asked.get("visibility") == "private")
        self.hub.add(name, {}, private=private and self.hub.keeps_private)
        return 200, {"url": f"{self.hub.url}/{name}", "name": name}, {}

    def info(self, name: str, revision: str = "main") -> tuple[int, Any, dict[str, str]]:
        repository = self._readable(name)
        files = self._tree(repository, revision)
        sha = repository.head if revision == "main" else revision
        siblings = [{"rfilename": path} for path in files]
        found = {"id": name, "modelId": name, "sha": sha, "private": repository.private}
        card = front_matter(files.get("README.md", b"").decode())
        metadata = {} if card is None else {"cardData": yaml.safe_load(card)}
        return 200, {**found, **metadata, "tags": [], "siblings": siblings}, {}

    def may_read(self, name: str) -> tuple[int, Any, dict[str, str]]:
        self._readable(name)
        return 200, {}, {}

    def may_write(self, name: str) -> tuple[int, Any, dict[str, str]]:
        if not self.hub.has_write_check:
            raise _RefusedError(404, "Sorry, we can't find the page you are looking for.")
        self._writable(name)
        return 200, {}, {}

    def validate_card(self) -> tuple[int, Any, dict[str, str]]:
        problem = card_problem(json.loads(self.body)["content"])
        if problem is None:
            return 200, {"errors": [], "warnings": []}, {}
        return 400, {"errors": [{"message": problem}], "warnings": []}, {}

    # Uploading

    def preupload(self, name: str, revision: str) -> tuple[int, Any, dict[str, str]]:
        there = self._tree(self._writable(name), revision)
        files = []
        for asked in json.loads(self.body)["files"]:
            path, old = asked["path"], there.get(asked["path"])
            lfs = is_lfs(path, asked["size"])
            oid = None
            if old is not None:
                oid = hashlib.sha256(old).hexdigest() if lfs else git_hash(old)
            mode = "lfs" if lfs else "regular"
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return 200, {"files": files}, {}

    def batch(self, name: str) -> tuple[int, Any, dict[str, str]]:
        self._writable(name)
        objects = []
        for asked in json.loads(self.body)["objects"]:
            oid, size = asked["oid"], asked["size"]
            if oid in self.hub.lfs:  # needs no upload
                objects.append({"oid": oid, "size": size})
                continue
            upload: dict[str, Any] = {"href": f"{self.hub.storage}/lfs/{oid}?signature=s"}
            step = self.hub.part_size
            if step is not None and size > step:
                numbers = range(1, -(-size // step) + 1)
                parts = {
                    f"{n:05}": f"{self.hub.storage}/lfs/{oid}/{n}?signature=s" for n in numbers
                }
                upload = {
                    "href": f"{self.hub.url}/lfs/{oid}/complete?signature=s",
                    "header": {"chunk_size": str(step), **parts},
                }
            verify = {"href": f"{self.hub.url}/{name}.git/info/lfs/objects/verify"}
            actions = {"upload": upload, "verify": verify}
            objects.append({"oid": oid, "size": size, "authenticated": True, "actions": actions})
        return 200, {"transfer": "basic", "objects": objects}, {}

    def put_object(self, oid: str) -> tuple[int, Any, dict[str, str]]:
        self._keep(oid, self.body)
        return 200, b"", {"ETag": f'"{oid}"'}

    def put_part(self, oid: str, number: str) -> tuple[int, Any, dict[str, str]]:
        self.hub.parts.setdefault(oid, {})[int(number)] = self.body
        return 200, b"", {"ETag": f'"{oid}-{number}"'}

    def complete(self, oid: str) -> tuple[int, Any, dict[str, str]]:
        listed = [part["partNumber"] for part in json.loads(self.body)["parts"]]
        self._keep(oid, b"".join(self.hub.parts[oid][number] for number in listed))
        return 200, {}, {}

    def _keep(self, oid: str, content: bytes) -> None:
        if self.headers.get("Authorization"):
            raise _RefusedError(400, "a signed address takes no token")
        if hashlib.sha256(content).hexdigest() != oid:
            raise _RefusedError(400, "what was sent has another hash")
        self.hub.lfs[oid] = content
        self.hub.uploaded.append(oid)

    def verify(self, name: str) -> tuple[int, Any, dict[str, str]]:
        self._writable(name)
        asked = json.loads(self.body)
        if len(self.hub.lfs.get(asked["oid"], b"")) != asked["size"]:
            raise _RefusedError(404, "the file is not there")
        return 200, {}, {}

    def commit(self, name: str, revision: str) -> tuple[int, Any, dict[str, str]]:
        repository = self._writable(name)
        files = dict(self._tree(repository, revision))
        header: dict[str, Any] = {}
        for line in self.body.splitlines():
            kind, value = (json.loads(line)[key] for key in ("key", "value"))
            if kind == "header":
                header = value
            elif kind == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                if value["oid"] not in self.hub.lfs:
                    raise _RefusedError(400, f"LFS pointer without a file: {value['path']}")
                files[value["path"]] = self.hub.lfs[value["oid"]]
            elif kind == "deletedFile":
                if value["path"] not in files:
                    raise _RefusedError(404, "A file with this name doesn't exist", "EntryNotFound")
                del files[value["path"]]
        problem = card_problem(files["README.md"].decode()) if "README.md" in files else None
        if problem is not None or not header.get("summary"):
            raise _RefusedError(400, problem or "a commit needs a summary")
        self.hub.commit_headers.append(header)
        oid = repository.commit(self.hub.spoil(files))
        found = {"success": True, "commitOid": oid, "hookOutput": ""}
        return 200, {**found, "commitUrl": f"{self.hub.url}/{name}/commit/{oid}"}, {}

    # Reading

    def tree(self, name: str, revision: str, folder: str) -> tuple[int, Any, dict[str, str]]:
        files = self._tree(self._readable(name), revision)
        folder = folder.strip("/")
        inside = [path for path in sorted(files) if not folder or path.startswith(f"{folder}/")]
        if not inside:
            raise _RefusedError(404, f"{folder} does not exist", "EntryNotFound")
        asked = parse_qs(self.address.query)
        if asked.get("recursive", ["false"])[0].lower() != "true":
            depth = folder.count("/") + 1 if folder else 0
            inside = [path for path in inside if path.count("/") == depth]
        start = int(asked.get("cursor", ["0"])[0])
        end = start + self.hub.page_size
        headers = {}
        if end < len(inside):
            query = f"recursive={asked.get('recursive', ['False'])[0]}&cursor={end}"
            link = f"{self.hub.url}{quote(self.address.path)}?{query}"
            headers["Link"] = f'<{link}>; rel="next"'
        return 200, [_described(path, files[path]) for path in inside[start:end]], headers

    def paths_info(self, name: str, revision: str) -> tuple[int, Any, dict[str, str]]:
        files = self._tree(self._readable(name), revision)
        asked = json.loads(self.body)["paths"]
        return 200, [_described(path, files[path]) for path in asked if path in files], {}

    def resolve(self, name: str, revision: str, path: str) -> tuple[int, Any, dict[str, str]]:
        repository = self._readable(name)
        files = self._tree(repository, revision)
        headers = {"X-Repo-Commit": repository.head if revision == "main" else revision}
        if path not in files:
            raise _RefusedError(404, "Entry not found", "EntryNotFound", **headers)
        content = files[path]
        if not is_lfs(path, len(content)):
            return 200, content, {**headers, "ETag": f'"{git_hash(content)}"'}
        oid = hashlib.sha256(content).hexdigest()
        linked = {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{oid}"'}
        return (
            302,
            b"",
            {**headers, **linked, "Location": f"{self.hub.storage}/cdn/{oid}?signature=s"},
        )

    def download(self, oid: str) -> tuple[int, Any, dict[str, str]]:
        if self.headers.get("Authorization"):
            raise _RefusedError(400, "a signed address takes no token")
        return 200, self.hub.lfs[oid], {"ETag": f'"{oid}"'}


def _described(path: str, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "file", "path": path, "size": len(content)}
    if is_lfs(path, len(content)):
        oid = hashlib.sha256(content).hexdigest()
        pointer = (
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
        ).encode()
        lfs = {"oid": oid, "size": len(content), "pointerSize": len(pointer)}
        return {**found, "oid": git_hash(pointer), "lfs": lfs}
    return {**found, "oid": git_hash(content)}


def front_matter(text: str) -> str | None:
    """The YAML in front of a card; None where there is none."""
    found = re.match(r"---\r?\n(.*?)\r?\n---(\r?\n|$)", text, flags=re.DOTALL)
    return None if found is None else found[1]


def card_problem(text: str) -> str | None:
    """What is wrong with a card's metadata; the checks of the Hub that ours could fail."""
    card = front_matter(text)
    if card is None:
        return None
    try:
        metadata = yaml.safe_load(card)
    except yaml.YAMLError as error:
        return f"the metadata is no YAML: {error}"
    if not isinstance(metadata, dict):
        return "the metadata is no mapping"
    for key in ("language", "license", "base_model", "datasets", "tags", "metrics"):
        value = metadata.get(key, [])
        for entry in value if isinstance(value, list) else [value]:
            if not isinstance(entry, str):
                return f'"{key}" must be a string or an array of strings'
    for model in metadata.get("model-index", []):
        if not model.get("name"):
            return '"model-index[0].name" is required'
        for result in model["results"]:
            for metric in result["metrics"]:
                if isinstance(metric.get("value"), bool) or metric.get("value") is None:
                    return '"model-index[0].results[0].metrics[0].value" is required'
                if metric["value"] != metric["value"]:
                    return "a value is not a number"
    return None


_NAME, _REVISION = r"([^/]+/[^/]+?)", r"([^/]+)"
_ROUTES: list[tuple[tuple[str, ...], str, Callable[..., tuple[int, Any, dict[str, str]]]]] = [
    (("GET",), "/api/whoami-v2", _Handler.whoami),
    (("POST",), "/api/repos/create", _Handler.create),
    (("POST",), "/api/validate-yaml", _Handler.validate_card),
    (("GET",), f"/api/models/{_NAME}/auth-check", _Handler.may_read),
    (("GET",), f"/api/models/{_NAME}/auth-check/write", _Handler.may_write),
    (("POST",), f"/api/models/{_NAME}/preupload/{_REVISION}", _Handler.preupload),
    (("POST",), f"/api/models/{_NAME}/commit/{_REVISION}", _Handler.commit),
    (("POST",), f"/api/models/{_NAME}/paths-info/{_REVISION}", _Handler.paths_info),
    (("GET",), f"/api/models/{_NAME}/tree/{_REVISION}(/.*)?", _Handler.tree),
    (("GET",), f"/api/models/{_NAME}/revision/{_REVISION}", _Handler.info),
    (("GET",), f"/api/models/{_NAME}", _Handler.info),
    (("POST",), rf"/{_NAME}\.git/info/lfs/objects/batch", _Handler.batch),
    (("POST",), rf"/{_NAME}\.git/info/lfs/objects/verify", _Handler.verify),
    (("POST",), r"/lfs/(\w+)/complete", _Handler.complete),
    (("PUT",), r"/lfs/(\w+)/(\d+)", _Handler.put_part),
    (("PUT",), r"/lfs/(\w+)", _Handler.put_object),
    (("GET", "HEAD"), f"/{_NAME}/resolve/{_REVISION}/(.+)", _Handler.resolve),
    (("GET", "HEAD"), r"/cdn/(\w+)", _Handler.download),
]
