"""Preupload, git-LFS and commits."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from .content import card_problem, git_hash, is_lfs
from .requests import Answer, RefusedError, Request


class Uploading(Request):
    """Takes files."""

    def preupload(self, name: str, revision: str) -> Answer:
        there = self.tree_of(self.writable(name), revision)
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

    def batch(self, name: str) -> Answer:
        self.writable(name)
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

    def put_object(self, oid: str) -> Answer:
        self._keep(oid, self.body)
        return 200, b"", {"ETag": f'"{oid}"'}

    def put_part(self, oid: str, number: str) -> Answer:
        self.hub.parts.setdefault(oid, {})[int(number)] = self.body
        return 200, b"", {"ETag": f'"{oid}-{number}"'}

    def complete(self, oid: str) -> Answer:
        listed = [part["partNumber"] for part in json.loads(self.body)["parts"]]
        self._keep(oid, b"".join(self.hub.parts[oid][number] for number in listed))
        return 200, {}, {}

    def _keep(self, oid: str, content: bytes) -> None:
        if self.headers.get("Authorization"):
            raise RefusedError(400, "a signed address takes no token")
        if hashlib.sha256(content).hexdigest() != oid:
            raise RefusedError(400, "what was sent has another hash")
        self.hub.lfs[oid] = content
        self.hub.uploaded.append(oid)

    def verify(self, name: str) -> Answer:
        self.writable(name)
        asked = json.loads(self.body)
        if len(self.hub.lfs.get(asked["oid"], b"")) != asked["size"]:
            raise RefusedError(404, "the file is not there")
        return 200, {}, {}

    def commit(self, name: str, revision: str) -> Answer:
        repository = self.writable(name)
        files = dict(self.tree_of(repository, revision))
        header: dict[str, Any] = {}
        for line in self.body.splitlines():
            kind, value = (json.loads(line)[key] for key in ("key", "value"))
            if kind == "header":
                header = value
            elif kind == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                if value["oid"] not in self.hub.lfs:
                    raise RefusedError(400, f"LFS pointer without a file: {value['path']}")
                files[value["path"]] = self.hub.lfs[value["oid"]]
            elif kind == "deletedFile":
                if value["path"] not in files:
                    raise RefusedError(404, "A file with this name doesn't exist", "EntryNotFound")
                del files[value["path"]]
        problem = card_problem(files["README.md"].decode()) if "README.md" in files else None
        if problem is not None or not header.get("summary"):
            raise RefusedError(400, problem or "a commit needs a summary")
        self.hub.commit_headers.append(header)
        oid = repository.commit(self.hub.spoil(files))
        found = {"success": True, "commitOid": oid, "hookOutput": ""}
        return 200, {**found, "commitUrl": f"{self.hub.url}/{name}/commit/{oid}"}, {}
