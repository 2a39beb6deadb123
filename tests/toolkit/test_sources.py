"""Names of models: resolved, or refused in one line with what works instead."""

import http.server
import json
import threading
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from toolkit import sources
from toolkit.data.text_classification import load_text_classification
from toolkit.errors import UserError
from toolkit.network import hub_failure, hub_reachable
from toolkit.sources import resolve_model

COMMIT = "0" * 40


@pytest.fixture
def model_folder(tmp_path):
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert"}')
    return folder


@pytest.fixture
def hub_away(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "hub_failure", lambda: "the Hub is away")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def cache(tmp_path, name, files):
    folder = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    for file in files:
        (snapshot / file).write_text("{}")


def test_a_folder_is_itself(model_folder, monkeypatch):
    assert resolve_model(str(model_folder)) == str(model_folder)
    monkeypatch.chdir(model_folder.parent)
    assert resolve_model("my-model") == "my-model"
    assert resolve_model("./my-model") == "my-model"


def test_an_adapter_alone_points_to_the_merged_model(model_folder, monkeypatch):
    """transformers would say that it does not recognise the model."""
    run = model_folder.parent / "run"
    adapter = run / "adapter"
    adapter.mkdir(parents=True)
    (adapter / "adapter_config.json").write_text("{}")
    with pytest.raises(UserError, match=r"an adapter alone .*merge_and_unload"):
        resolve_model(str(adapter))
    model_folder.rename(run / "model")
    with pytest.raises(UserError, match=rf"with its base it is {run}/model: give that folder"):
        resolve_model(str(adapter))
    with pytest.raises(UserError, match=rf"Did you mean {run}/model\?"):
        resolve_model(str(run))
    monkeypatch.chdir(adapter)
    with pytest.raises(UserError, match=r"it is \.\./model: give that folder"):
        resolve_model(".")
    (adapter / "config.json").write_text('{"model_type": "bert"}')  # a whole model besides
    assert resolve_model(str(adapter)) == str(adapter)


def test_a_folder_without_config_names_the_one_inside(model_folder):
    with pytest.raises(UserError, match=r"no config\.json\. Did you mean .*my-model\?"):
        resolve_model(str(model_folder.parent))


def test_a_file_is_refused(model_folder):
    with pytest.raises(UserError, match="is a file; give the folder"):
        resolve_model(str(model_folder / "config.json"))


@pytest.mark.parametrize("name", ["my-modle", "my-modle/model", "my_model/"])
def test_a_path_that_does_not_exist_suggests_near_ones(model_folder, name):
    path = f"{model_folder.parent}/{name}"
    with pytest.raises(UserError, match=r"no such model folder: .*Did you mean my-model\?"):
        resolve_model(path)


@pytest.mark.parametrize(
    "name", ["./nowhere", "../x/y/z", "a/b/c", "模型/一", "/nowhere/at/all", ""]
)
def test_paths_are_not_taken_for_hub_names(name, monkeypatch):
    monkeypatch.setattr(sources, "hub_failure", lambda: pytest.fail("asked the Hub"))
    with pytest.raises(UserError, match="no such model folder"):
        resolve_model(name)


def test_embedded_names(monkeypatch):
    monkeypatch.setattr(sources, "chinese_bert_folder", lambda: Path("/cache/chinese-bert"))
    assert resolve_model("demo:chinese-bert") == "/cache/chinese-bert"
    with pytest.raises(UserError, match="there is demo:chinese-bert"):
        resolve_model("demo:chinese-brt")


def test_away_and_not_cached_says_in_one_line_what_works(hub_away):
    with pytest.raises(UserError) as error:
        resolve_model("google-bert/bert-base-chinese")
    message = str(error.value)
    assert message.startswith(
        "cannot fetch the model 'google-bert/bert-base-chinese': the Hub is away"
    )
    assert "`accelerate launch recipes/bert_sentiment.py --preset demo`" in message
    assert "`--model PATH`" in message
    assert "\n" not in message


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin.index.json"])
def test_away_but_cached_is_the_name(hub_away, tmp_path, weights):
    cache(tmp_path, "owner/model", ["config.json", weights])
    assert resolve_model("owner/model") == "owner/model"


def test_away_and_half_cached_is_refused(hub_away, tmp_path):
    cache(tmp_path, "owner/model", ["config.json", "tokenizer.json"])
    with pytest.raises(UserError, match="not in the local cache"):
        resolve_model("owner/model")


class FakeHub(http.server.BaseHTTPRequestHandler):
    """Knows `owner/model` and `owner/no-config`; `owner/gated` is closed, all else is unknown."""

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        body = b'{"model_type": "bert"}'
        if self.path.startswith("/owner/model/resolve"):
            self.reply(200, body, ETag='"1"', **{"X-Repo-Commit": COMMIT})
        elif self.path.startswith("/owner/no-config/resolve"):
            self.reply(404, b"", **{"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        elif self.path.startswith("/owner/gated/resolve"):
            self.reply(403, b"", **{"X-Error-Code": "GatedRepo"})
        elif self.path == "/":
            self.reply(200, b"")
        else:
            self.reply(404, b"", **{"X-Error-Code": "RepoNotFound"})

    def reply(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def fake_hub(monkeypatch, tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    download = huggingface_hub.hf_hub_download
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(sources, "hub_failure", lambda: None)
    monkeypatch.setattr(
        huggingface_hub,
        "hf_hub_download",
        lambda *names: download(*names, endpoint=endpoint, cache_dir=tmp_path / "hub"),
    )
    yield endpoint
    server.shutdown()


def test_a_model_on_the_hub_is_its_name(fake_hub, tmp_path):
    assert resolve_model("owner/model") == "owner/model"
    (config,) = tmp_path.glob("hub/models--owner--model/snapshots/*/config.json")
    assert json.loads(config.read_text()) == {"model_type": "bert"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("owner/no-config", "is no transformers model: no config.json"),
        ("owner/gated", "cannot fetch the model 'owner/gated': .*403"),
        ("owner/unknown", "cannot fetch the model 'owner/unknown': .*404"),
    ],
)
def test_what_the_hub_refuses_is_said_in_one_line(fake_hub, name, message):
    with pytest.raises(UserError, match=message) as error:
        resolve_model(name)
    assert "\n" not in str(error.value)


@pytest.mark.hub
def test_the_published_model_and_data_are_found_on_the_hub():
    if not hub_reachable():
        pytest.skip(f"the Hub is out of reach: {hub_failure()}")
    assert resolve_model("google-bert/bert-base-chinese") == "google-bert/bert-base-chinese"
    data = load_text_classification("lansinuote/ChnSentiCorp")
    assert len(data.label_names) == 2
    assert data.summary["splits_made"] == []
