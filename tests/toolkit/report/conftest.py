"""A browser without a window, a reader of HTML, and a report that holds every block."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from toolkit import plots
from toolkit.report.blocks import (
    Bullets,
    Cell,
    Code,
    Details,
    Document,
    Figure,
    Link,
    Paragraph,
    Quote,
    Section,
    Table,
)

LONG_WORD = "Donaudampfschifffahrtsgesellschaft" * 12
COMMAND = (
    "accelerate launch recipes/bert_sentiment.py --preset=demo --train_size=13363 "
    "--method=frozen '--title=Chinese BERT, frozen + logistic regression' "
    "--output_dir=results/runs/bert_sentiment/" + "20261130-053834-" * 8
)
REVIEW = "酒店位置很好，服务也不错，就是隔音差了一点。\n唯一的缺点：停车场太小"


@pytest.fixture(scope="session")
def document() -> Document:
    """Every block, with what is hard to lay out: long words, wide tables, Chinese."""

    def forest() -> Any:
        return plots.forest_plot([plots.Bar("中文 BERT", 0.879, 0.865, 0.893)])

    def curve() -> Any:
        return plots.learning_curve([plots.Series("BERT", [500, 1000], [0.8, 0.85])])

    rows = [
        [f"run {row} with a longer name", *[Cell("87.9%", detail="[86.5, 89.3]")] * 9]
        for row in range(20)
    ]
    heat = [["negative", Cell("912", shade=0.9, detail="88%")], ["positive", Cell("1", shade=0)]]
    return Document(
        title="Five ways " + LONG_WORD,
        subtitle=("written by ", Link("toolkit compare", "https://example.org/?a=1&b=2")),
        footer="The end.",
        blocks=[
            Paragraph("BERT (87.9%) is better than TF-IDF (85.9%).", tone="lead"),
            Section(
                "Results",
                [
                    Table(["", *[f"metric {n}" for n in range(9)]], rows, numeric=range(1, 10)),
                    Paragraph("Bold is significant.", tone="caption"),
                    Figure("accuracy", forest, alt='BERT "leads" & wins', caption="Accuracy."),
                    Figure("curve", curve, alt="It grows", caption="Learning curve."),
                    Table(["truth", "negative"], heat, numeric=[1], caption="Confusion"),
                ],
            ),
            Section(
                LONG_WORD,
                [
                    Bullets(["one", LONG_WORD]),
                    Paragraph("different rules", tone="note"),
                    Paragraph("not a fair one", tone="warning"),
                    Section("Examples", [Quote(REVIEW), Quote("مرحبا بالعالم")], level=3),
                    Table(["review", "truth"], [[REVIEW, "positive"], [LONG_WORD, "negative"]]),
                    Code(COMMAND),
                    Details("More", [Paragraph("folded away"), Code("a: 1\n  b: 2")]),
                ],
            ),
        ],
    )


class ReadPage(HTMLParser):
    """The elements of a page as (tag, attributes, text), in the order in which they begin."""

    def __init__(self, markup: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], str]] = []
        self._open: list[int] = []
        self.feed(markup)
        self.close()
        assert not self._open, "an element is not closed"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(attributes) == len(dict(attributes)), f"an attribute of {tag} is there twice"
        self.elements.append((tag, {name: value or "" for name, value in attributes}, ""))
        if tag not in ("br", "hr", "img", "input", "meta"):
            self._open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for place in self._open:
            tag, attributes, text = self.elements[place]
            self.elements[place] = tag, attributes, text + data

    def texts(self, *tags: str) -> list[str]:
        """The texts of all elements of these kinds, each on one line."""
        return [" ".join(text.split()) for tag, _, text in self.elements if tag in tags]


@pytest.fixture(scope="session")
def read_page() -> Callable[[str], ReadPage]:
    return ReadPage


class Browser:
    """Headless Chromium, spoken to by its DevTools protocol over a pair of pipes."""

    def __init__(self, program: str, folder: Path):
        pipes = [folder / name for name in ("to_browser", "from_browser")]
        for pipe in pipes:
            os.mkfifo(pipe)
        self._process = subprocess.Popen(
            [
                # The protocol's pipes are the file descriptors 3 and 4.
                *("sh", "-c", 'exec "$@" 3<"$0/to_browser" 4>"$0/from_browser"', str(folder)),
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",  # a picture of the whole page is then laid out as the page was
                "--remote-debugging-pipe",
                f"--user-data-dir={folder / 'profile'}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._write, self._read = os.open(pipes[0], os.O_WRONLY), os.open(pipes[1], os.O_RDONLY)
        self._timer = threading.Timer(120, self._process.kill)  # a hanging one ends the pipe
        self._timer.start()
        self._buffer, self._calls, self._session = b"", 0, ""
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")
        self.call("Network.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._calls += 1
        message: dict[str, Any] = {"id": self._calls, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._calls:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        if answer.get("method") == "Network.requestWillBeSent":
            self.requests.append(answer["params"]["request"]["url"])
        return answer

    def open(self, path: Path, width: int, media: str = "screen") -> None:
        """Load a file in a page of so many CSS pixels; `requests` are then those of this page."""
        self.requests = []
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", media=media)
        self.call("Page.navigate", url=path.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, clip: dict[str, float]) -> bytes:
        """PNG of a part of the page, in CSS pixels."""
        answer = self.call(
            "Page.captureScreenshot", captureBeyondViewport=True, clip={**clip, "scale": 1}
        )
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        answer = self.call("Page.printToPDF", preferCSSPageSize=True)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no browser installed ({', '.join(names)})")
    browser = Browser(program, tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()
