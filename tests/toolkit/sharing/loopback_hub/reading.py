"""Trees and files."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import parse_qs, quote

from .content import described, git_hash, is_lfs
from .requests import Answer, RefusedError, Request


class Reading(Request):
    """Gives files."""

    def tree(self, name: str, revision: str, folder: str) -> Answer:
        files = self.tree_of(self.readable(name), revision)
        folder = folder.strip("/")
        inside = [path for path in sorted(files) if not folder or path.startswith(f"{folder}/")]
        if not inside:
            raise RefusedError(404, f"{folder} does not exist", "EntryNotFound")
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
        return 200, [described(path, files[path]) for path in inside[start:end]], headers

    def paths_info(self, name: str, revision: str) -> Answer:
        files = self.tree_of(self.readable(name), revision)
        asked = json.loads(self.body)["paths"]
        return 200, [described(path, files[path]) for path in asked if path in files], {}

    def resolve(self, name: str, revision: str, path: str) -> Answer:
        repository = self.readable(name)
        files = self.tree_of(repository, revision)
        headers = {"X-Repo-Commit": repository.head if revision == "main" else revision}
        if path not in files:
            raise RefusedError(404, "Entry not found", "EntryNotFound", **headers)
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

    def download(self, oid: str) -> Answer:
        if self.headers.get("Authorization"):
            raise RefusedError(400, "a signed address takes no token")
        return 200, self.hub.lfs[oid], {"ETag": f'"{oid}"'}
