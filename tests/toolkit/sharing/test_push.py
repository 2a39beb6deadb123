"""`toolkit push` against a real client's view of a Hub on this machine."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from toolkit.sharing.upload import stale_files

READ_TOKEN = "hf_loopbackTokenThatMayOnlyReadAaa"
TOKEN = "hf_loopbackTokenOfTheTestsNoSecret1"

Command = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("copied_model")


@pytest.fixture
def run(make_run: Callable[..., Path]) -> Path:
    return make_run()


def assert_trained_model_is_there(run: Path) -> None:
    assert (run / "model" / "model.safetensors").is_file()
    assert (run / "summary.json").is_file()


def assert_no_token(*texts: str, folder: Path | None = None) -> None:
    files = [] if folder is None else [p for p in folder.rglob("*") if p.is_file()]
    contents = [text.encode() for text in texts] + [file.read_bytes() for file in files]
    for content in contents:
        assert TOKEN.encode() not in content
        assert READ_TOKEN.encode() not in content


def test_a_push(hub: Any, run: Path, toolkit_command: Command, tmp_path: Path) -> None:
    before = (run / "model" / "model.safetensors").read_bytes()
    result = tmp_path / "result.json"
    status, out, err = toolkit_command("push", run, "lin/reviews", "--json", result)
    assert status == 0, err
    files = hub.files("lin/reviews")
    assert set(files) == {
        ".gitattributes", "README.md", "config.json", "model.safetensors", "tokenizer_config.json",
        "training.png", "training_summary.json", "vocab.txt",
    }  # fmt: skip
    assert files["model.safetensors"] == before
    assert not hub.repositories["lin/reviews"].private
    [_, (commit, _)] = hub.repositories["lin/reviews"].commits  # made, then one commit
    assert hub.commit_headers == [{"summary": "Upload tiny BERT, full", "description": ""}]
    assert f"Pushed and checked: {hub.url}/lin/reviews (public, commit {commit})" in out
    written = json.loads(result.read_text(encoding="utf-8"))
    assert (written["pushed"], written["commit"]) == (True, commit)
    assert written["files"]["model.safetensors"] == len(before)
    assert not (run / "share").exists()  # it is on the Hub; the weights are in the run
    assert_trained_model_is_there(run)
    assert_no_token(out, err, folder=run)


def test_nothing_of_this_machine_is_published(
    hub: Any, run: Path, toolkit_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run)  # whose path is then in no file either
    config = json.loads((run / "model" / "config.json").read_text())
    config["_name_or_path"] = str(run / "model")
    (run / "model" / "config.json").write_text(json.dumps(config))
    assert toolkit_command("push", run, "lin/reviews")[0] == 0
    for name, content in hub.files("lin/reviews").items():
        for place in (str(run), str(Path.home()) + "/", "/home/lin"):
            assert place.encode() not in content, name
    summary = json.loads(hub.files("lin/reviews")["training_summary.json"])
    assert summary["data"]["dataset"] == "reviews.csv"
    assert summary["settings"]["dataset"] == "reviews.csv"
    assert "output_dir" not in summary["settings"]
    assert summary["command"] == "python recipes/bert_sentiment.py --dataset reviews.csv"


def test_titles_with_slashes_are_published_whole(
    hub: Any, make_run: Callable[..., Path], toolkit_command: Command
) -> None:
    title, data = "en/de/fr, </s> of BERT/LoRA/r=8", {"label_names": ["tcp/ip/udp", "/data/x"]}
    run = make_run(title=title, command=f"python recipes/x.py --title '{title}'", data=data)
    assert toolkit_command("push", run, "lin/reviews")[0] == 2  # a label that looks like a path
    (run / "summary.json").write_text(
        (run / "summary.json").read_text(encoding="utf-8").replace("/data/x", "udp"), "utf-8"
    )
    assert toolkit_command("push", run, "lin/reviews")[0] == 0
    summary = json.loads(hub.files("lin/reviews")["training_summary.json"])
    assert summary["title"] == title
    assert summary["command"] == f"python recipes/x.py --title '{title}'"
    assert summary["data"]["label_names"] == ["tcp/ip/udp", "udp"]


def test_paths_of_other_machines_are_cut(hub: Any, run: Path, toolkit_command: Command) -> None:
    """Also in what transformers wrote, whose paths are of a machine that the run came from."""
    config = json.loads((run / "model" / "config.json").read_text())
    config |= {
        "base": "/data/wang/my base/model.bin", "note": r"was C:\Users\wang\x.json, 见/home/wang/y",
        "source": "https://wang:secret@git.example/a", "ratio": "a/b/c",
    }  # fmt: skip
    (run / "model" / "config.json").write_text(json.dumps(config))
    assert toolkit_command("push", run, "lin/reviews")[0] == 0
    found = json.loads(hub.files("lin/reviews")["config.json"])
    assert found["base"] == "model.bin"
    assert found["note"] == "was x.json, 见y"
    assert found["source"] == "https://git.example/a"
    assert found["ratio"] == "a/b/c"
    assert found["id2label"] == config["id2label"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("房间在 /home/wang_li/x.txt", "a path of this machine, /home/wang_li/x.txt."),
        ("see https://wang:secret@a.b/c", "an address with a login in it."),
    ],
)
def test_test_texts_with_traces_are_refused(
    hub: Any, run: Path, toolkit_command: Command, text: str, said: str
) -> None:
    file = run / "predictions" / "test.parquet"
    rows = pyarrow.parquet.read_table(file).to_pylist()
    rows[1]["text"] = text
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 2
    assert f"README.md would publish {said}" in err
    assert "secret" not in err
    assert toolkit_command("push", run, "lin/reviews", "--no-examples")[0] == 0


@pytest.mark.parametrize("token", [None, "hf_x", READ_TOKEN, "hf_网"])
def test_tokens_that_will_not_do(
    hub: Any,
    run: Path,
    toolkit_command: Command,
    monkeypatch: pytest.MonkeyPatch,
    token: str | None,
) -> None:
    if token is None:
        monkeypatch.delenv("HF_TOKEN")
    else:
        monkeypatch.setenv("HF_TOKEN", token)
    status, out, err = toolkit_command("push", run, "lin/reviews", "--private")
    assert status == 2
    says = {
        None: "no token of the Hub was found",
        "hf_x": "the Hub does not know the token (401: Invalid user token",
        READ_TOKEN: "the token of lin may only read",
        "hf_网": "characters that no token has",
    }
    assert says[token] in err
    assert "Traceback" not in err
    assert f"    toolkit push {run} lin/reviews --private\n" in err
    assert hub.repositories == {}
    assert_trained_model_is_there(run)
    assert_no_token(out, err, folder=run)
    assert "hf_x" not in err


def test_somebody_elses_name(hub: Any, run: Path, toolkit_command: Command) -> None:
    status, _, err = toolkit_command("push", run, "wang/reviews")
    assert status == 2
    assert "the token may not do this (403: You don't have the rights to create a model" in err
    assert "your own account or an organisation of yours" in err
    assert (run / "share" / "model.safetensors").is_file()
    assert hub.uploaded == []


def test_somebody_elses_model_that_can_be_read(
    hub: Any, run: Path, toolkit_command: Command
) -> None:
    """`create_repo(exist_ok=True)` passes there: reading is all that it then asks for."""
    hub.add("wang/reviews", {"README.md": b"his\n"})
    status, _, err = toolkit_command("push", run, "wang/reviews")
    assert status == 2
    assert "asking for the right to write to wang/reviews as lin" in err
    assert hub.uploaded == []
    assert hub.files("wang/reviews")["README.md"] == b"his\n"


def test_an_organisation(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.has_write_check = False  # an older Hub, which lacks that question
    assert toolkit_command("push", run, "lab/reviews")[0] == 0
    assert "model.safetensors" in hub.files("lab/reviews")


@pytest.mark.parametrize("name", ["user/na me", "reviews", "a/b/c", "lin/--x", "lin/名字", ""])
def test_names_that_are_none(hub: Any, run: Path, toolkit_command: Command, name: str) -> None:
    status, _, err = toolkit_command("push", run, name)
    assert status == 2
    assert f"{name!r} is no name of a repository: expected user/name" in err
    assert hub.requests == []


def test_private_is_private(hub: Any, run: Path, toolkit_command: Command) -> None:
    status, out, _ = toolkit_command("push", run, "lin/reviews", "--private")
    assert status == 0
    assert hub.repositories["lin/reviews"].private
    assert "(private, commit" in out


def test_private_asked_of_a_public_one(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.add("lin/reviews", {})
    status, _, err = toolkit_command("push", run, "lin/reviews", "--private")
    assert status == 2
    assert "lin/reviews is there already and public, but --private was given" in err
    assert hub.uploaded == []
    assert set(hub.files("lin/reviews")) == {".gitattributes"}


def test_a_hub_that_makes_it_public(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.keeps_private = False
    status, _, err = toolkit_command("push", run, "lin/reviews", "--private")
    assert status == 2
    assert "was to be private, but the Hub made it public; nothing was uploaded" in err
    assert hub.uploaded == []


def test_one_that_is_private_stays_so(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.add("lin/reviews", {}, private=True)
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 0
    assert "is there, private, writable" in err
    assert hub.repositories["lin/reviews"].private


def test_files_of_the_model_before_go(hub: Any, run: Path, toolkit_command: Command) -> None:
    there = {
        "adapter_model.safetensors": b"old adapter",
        "adapter_config.json": b"{}",
        "model-00001-of-00002.safetensors": b"old shard",
        "NOTICE": b"mine\n",
        "onnx/model.onnx": b"also mine",
    }
    hub.add("lin/reviews", there)
    status, out, err = toolkit_command("push", run, "lin/reviews")
    assert status == 0
    assert not {"adapter_model.safetensors", "adapter_config.json",
                "model-00001-of-00002.safetensors"} & set(hub.files("lin/reviews"))  # fmt: skip
    assert {"NOTICE", "onnx/model.onnx", ".gitattributes"} < set(hub.files("lin/reviews"))
    assert len(hub.repositories["lin/reviews"].commits) == 2  # in the same commit
    assert "go: adapter_config.json, adapter_model.safetensors, model-00001-of" in err
    assert "Left as they were in lin/reviews: NOTICE, onnx/model.onnx" in out


def test_the_same_again_sends_nothing(hub: Any, run: Path, toolkit_command: Command) -> None:
    toolkit_command("push", run, "lin/reviews")
    sent, commit = list(hub.uploaded), hub.repositories["lin/reviews"].head
    status, out, _ = toolkit_command("push", run, "lin/reviews")
    assert status == 0
    assert hub.uploaded == sent
    assert hub.repositories["lin/reviews"].head == commit
    assert f"commit {commit}" in out


@pytest.mark.parametrize("path", ["/lfs/", "/preupload/", "/commit/", "/objects/batch"])
def test_a_connection_that_drops_once(
    hub: Any, run: Path, toolkit_command: Command, path: str
) -> None:
    method = "PUT" if path == "/lfs/" else "POST"
    hub.fail(method, path, drop=True)
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 0, err
    assert "model.safetensors" in hub.files("lin/reviews")
    assert len(hub.uploaded) == len(set(hub.uploaded))  # nothing was sent twice


def test_an_answer_that_is_lost(hub: Any, run: Path, toolkit_command: Command) -> None:
    """The commit was made, but its answer never came: no second one is."""
    hub.fail("POST", "/commit/", lose_answer=True)
    status, out, _ = toolkit_command("push", run, "lin/reviews")
    assert status == 0
    assert len(hub.repositories["lin/reviews"].commits) == 2
    assert hub.repositories["lin/reviews"].head in out


def test_a_push_that_fails_and_is_taken_up(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.fail("POST", "/commit/", times=3, status=503)
    status, out, err = toolkit_command("push", run, "lin/reviews", "--private")
    assert status == 1
    assert f"uploading to lin/reviews: {hub.url} answers 503" in err
    assert "Trying again in 0 s; what is there is not sent again." in err
    assert f"Everything is still in {run}. Try again with:" in err
    assert f"    toolkit push {run} lin/reviews --private\n" in err
    assert "Pushed" not in out
    assert set(hub.files("lin/reviews")) == {".gitattributes"}  # not the half of it
    assert (run / "share" / "README.md").is_file()
    assert_trained_model_is_there(run)
    weights = hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()
    assert hub.uploaded.count(weights) == 1

    status, _, _ = toolkit_command("push", run, "lin/reviews", "--private")
    assert status == 0
    assert hub.uploaded.count(weights) == 1  # what was there already was not sent again
    assert "model.safetensors" in hub.files("lin/reviews")


def test_uploads_in_parts_and_trees_in_pages(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.part_size, hub.page_size = 4096, 3
    assert toolkit_command("push", run, "lin/reviews")[0] == 0
    assert hub.files("lin/reviews")["model.safetensors"] == (
        (run / "model" / "model.safetensors").read_bytes()
    )
    assert hub.seen("PUT", r"/lfs/\w+/2") >= 1
    assert hub.seen("GET", "cursor=3") >= 1


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_what_arrives_damaged_is_not_called_done(
    hub: Any, run: Path, toolkit_command: Command, damage: str
) -> None:
    def spoil(files: dict[str, bytes]) -> dict[str, bytes]:
        spoilt = dict(files)
        content = spoilt.pop("model.safetensors")
        if damage == "changed":
            spoilt["model.safetensors"] = content[:-1] + bytes([content[-1] ^ 1])
        return spoilt

    hub.spoil = spoil
    status, out, err = toolkit_command("push", run, "lin/reviews")
    assert status == 1
    assert "Pushed" not in out
    what = {"changed": "has another content", "missing": "is missing"}[damage]
    assert f"model.safetensors {what}" in err
    assert "toolkit push" in err


def test_a_small_file_that_arrives_damaged(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.spoil = lambda files: {**files, "config.json": b"{}"}
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 1
    assert "config.json has another content" in err


def test_nobody_listens(
    hub: Any, run: Path, toolkit_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", nobody)
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 1
    assert f"the connection to {nobody} failed (ConnectError" in err
    assert "HF_ENDPOINT" in err
    assert "Traceback" not in err


def test_a_hub_that_says_nothing(
    hub: Any, run: Path, toolkit_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.sharing.hub_errors.SLOWEST", 0.2)
    hub.fail("GET", "whoami", delay=1.0)
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 1
    assert f"{hub.url} said nothing for 0.2 s" in err


def test_a_slow_hub_is_waited_for(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.fail("GET", "whoami", delay=0.3)
    hub.fail("PUT", "/lfs/", delay=0.3)
    assert toolkit_command("push", run, "lin/reviews")[0] == 0


@pytest.mark.parametrize("status", [500, 429])
def test_a_hub_with_troubles(hub: Any, run: Path, toolkit_command: Command, status: int) -> None:
    hub.fail("POST", "/api/repos/create", status=status)
    code, _, err = toolkit_command("push", run, "lin/reviews")
    assert code == 1
    assert f"{hub.url} answers {status}" in err


def test_a_server_that_is_no_hub(hub: Any, run: Path, toolkit_command: Command) -> None:
    hub.fail("GET", "whoami", status=404)
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 1
    assert f"{hub.url} has no such page (404" in err
    assert "Is HF_ENDPOINT a Hub?" in err


def test_an_endpoint_that_is_no_address(
    hub: Any, run: Path, toolkit_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:port")
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 1
    assert "InvalidURL" in err
    assert "Traceback" not in err


def test_a_folder_that_cannot_be_written(
    hub: Any, run: Path, toolkit_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, content: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("toolkit.sharing.staging._write_json", full)
    status, _, err = toolkit_command("push", run, "lin/reviews")
    assert status == 2
    assert "share cannot be written: [Errno 28] No space left on device" in err
    assert not list(run.glob("*share*"))
    assert hub.repositories == {}


def test_a_refusal_does_not_wait_for_torch() -> None:
    """Nothing heavy is imported until the token is known to be good."""
    code = (
        "import sys, toolkit.commands.push, toolkit.sharing.push_report, toolkit.sharing.pushing; "
        "sys.exit(' '.join({'torch', 'transformers', 'sklearn'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_offline_mode(run: Path, toolkit_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    status, out, err = toolkit_command("push", run, "lin/reviews")
    assert status == 2
    assert "offline mode is set (HF_HUB_OFFLINE). Unset it to push" in err
    assert_no_token(out, err)


def test_a_dry_run(run: Path, toolkit_command: Command, tmp_path: Path) -> None:
    """Also without network and token."""
    result = tmp_path / "result.json"
    status, out, _ = toolkit_command(
        "push", run, "lin/reviews", "--dry-run", "--language", "zh", "no", "--json", result
    )
    assert status == 0
    assert "Nothing was uploaded" in out
    assert "model.safetensors" in out
    assert f"{(run / 'model' / 'model.safetensors').stat().st_size:,}" in out
    assert f"To push it: toolkit push {run} lin/reviews --language zh no" in out
    assert (run / "share" / "README.md").is_file()
    assert json.loads(result.read_text(encoding="utf-8"))["pushed"] is False


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_json_to_standard_output(
    hub: Any, run: Path, toolkit_command: Command, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    status, out, _ = toolkit_command("push", run, "lin/reviews", "--json", "-", *flags)
    assert status == 0
    said = json.loads(out)  # and nothing else
    assert said["pushed"] is not bool(flags)
    weights = (run / "model" / "model.safetensors").stat().st_size
    assert said["files"]["model.safetensors"] == weights
    assert not (tmp_path / "-").exists()


def test_json_that_cannot_be_written_is_noticed_before(
    hub: Any, run: Path, toolkit_command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "no" / "such.json"
    status, _, err = toolkit_command("push", run, "lin/reviews", "--json", file)
    assert status == 2
    assert f"--json {file}: expected a file in a folder that exists." in err
    assert (hub.requests, hub.repositories) == ([], {})
    assert not (run / "share").exists()


def test_a_push_that_is_interrupted(
    hub: Any, run: Path, toolkit_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*rest: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("toolkit.sharing.upload.upload", stopped)
        status, _, err = toolkit_command("push", run, "lin/reviews", "--private")
    assert status == 130
    assert (
        f"interrupted. Everything is still in {run}; the folder that is uploaded: {run / 'share'}. "
        f"Push it with:\n    toolkit push {run} lin/reviews --private\n"
    ) in err
    assert (run / "share" / "model.safetensors").is_file()
    assert toolkit_command("push", run, "lin/reviews", "--private")[0] == 0


def test_tokenizers_of_the_model_before_are_stale(tmp_path: Path) -> None:
    there = [
        "source.spm", "target.spm", "target_vocab.json", "spiece.model", "vocab.json",
        "sentencepiece.bpe.model", "tokenizer.json", "chat_template.jinja", "pytorch_model.bin",
    ]  # fmt: skip
    others = [".gitattributes", "NOTICE", "README.md", "onnx/source.spm", "data.json"]
    (tmp_path / "tokenizer.json").touch()
    found = stale_files(there + others, tmp_path)
    assert found == sorted(set(there) - {"tokenizer.json"})


def test_a_token_in_the_data_is_not_published(
    hub: Any, make_run: Callable[..., Path], toolkit_command: Command
) -> None:
    run = make_run(title=f"mine {TOKEN}")
    status, out, err = toolkit_command("push", run, "lin/reviews")
    assert status == 2
    assert "README.md would publish what looks like a token of the Hub" in err
    assert hub.repositories == {}
    assert_no_token(out, err)


def test_a_model_folder(
    hub: Any, tmp_path: Path, write_tiny_bert: Callable[..., Path], toolkit_command: Command
) -> None:
    folder = write_tiny_bert(tmp_path / "mine", "BertForSequenceClassification")
    status, _, err = toolkit_command("push", folder, "lin/mine")
    assert status == 0, err
    card = hub.files("lin/mine")["README.md"].decode()
    assert "How it was trained and measured is not recorded." in card
    assert "training_summary.json" not in hub.files("lin/mine")


@pytest.mark.hub
def test_the_real_hub(run: Path, toolkit_command: Command) -> None:
    """Makes and deletes a private repository of the account whose token is set."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils import get_token

    if not get_token():
        pytest.skip("needs a token of the Hub with the right to write")
    api = HfApi()
    name = f"{api.whoami()['name']}/scratch-models-toolkit-test"
    try:
        status, out, err = toolkit_command("push", run, name, "--private")
        assert status == 0, err
        assert "Pushed and checked" in out
        info = api.model_info(name)
        assert info.private
        assert info.card_data.eval_results[0].metric_value == 0.75
    finally:
        api.delete_repo(name, missing_ok=True)
