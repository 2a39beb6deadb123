"""Accounts, repositories, and what may be done with them."""

from __future__ import annotations

import json

import yaml

from .content import card_problem, front_matter
from .requests import Answer, RefusedError, Request


class Accounts(Request):
    """Answers about them."""

    def whoami(self) -> Answer:
        user = self.known_user()
        organisations = [
            {"type": "org", "name": name, "roleInOrg": "write"} for name in user.organisations
        ]
        token = {"displayName": "test", "role": user.role}
        auth = {"type": "access_token", "accessToken": token}
        return 200, {"type": "user", "name": user.name, "orgs": organisations, "auth": auth}, {}

    def create(self) -> Answer:
        asked, user = json.loads(self.body), self.known_user()
        owner = asked.get("organization") or user.name
        name = f"{owner}/{asked['name']}"
        if not user.may_write_to(owner):
            raise RefusedError(
                403,
                f'You don\'t have the rights to create a model under the namespace "{owner}"',
            )
        if name in self.hub.repositories:
            url = f"{self.hub.url}/{name}"
            return 409, {"error": "You already created this model repo", "url": url}, {}
        private = asked.get("private", asked.get("visibility") == "private")
        self.hub.add(name, {}, private=private and self.hub.keeps_private)
        return 200, {"url": f"{self.hub.url}/{name}", "name": name}, {}

    def info(self, name: str, revision: str = "main") -> Answer:
        repository = self.readable(name)
        files = self.tree_of(repository, revision)
        sha = repository.head if revision == "main" else revision
        siblings = [{"rfilename": path} for path in files]
        found = {"id": name, "modelId": name, "sha": sha, "private": repository.private}
        card = front_matter(files.get("README.md", b"").decode())
        metadata = {} if card is None else {"cardData": yaml.safe_load(card)}
        return 200, {**found, **metadata, "tags": [], "siblings": siblings}, {}

    def may_read(self, name: str) -> Answer:
        self.readable(name)
        return 200, {}, {}

    def may_write(self, name: str) -> Answer:
        if not self.hub.has_write_check:
            raise RefusedError(404, "Sorry, we can't find the page you are looking for.")
        self.writable(name)
        return 200, {}, {}

    def validate_card(self) -> Answer:
        problem = card_problem(json.loads(self.body)["content"])
        if problem is None:
            return 200, {"errors": [], "warnings": []}, {}
        return 400, {"errors": [{"message": problem}], "warnings": []}, {}
