"""What people look at, opened in a real browser: dbt's documentation with the lineage, and the page of `delta-cdc report`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.project import PACKAGE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.dbt,
    pytest.mark.spark,
    pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium here; on Debian: sudo apt-get install chromium"),
]
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed; make setup does it")

PHONE, TABLET, DESK = {"width": 390, "height": 844}, {"width": 1024, "height": 768}, {"width": 1280, "height": 800}
# addresses that dbt's own page asks for and does not have: two icons and the favicon, whose templates nobody filled in
NOT_DBTS = ("getIcon(", "favicon.ico")

# [[text, contrast with what it stands on, of 1 to 21], ...] of all elements that have a text of their own
CONTRASTS = """() => {
  const parts = (color) => color.match(/[0-9.]+/g).map(Number);
  const light = (color) => parts(color).slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    return parts(color)[3] === 0 ? ground(element.parentElement) : color;
  };
  return [...document.body.querySelectorAll("*")]
    .filter((e) => !e.closest("svg") && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
    .map((e) => {
      const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
      return [e.textContent.trim(), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
    });
}"""

# nodes by name: left and right edge, and whether something is painted where it is; edges: [from, to]
GRAPH = """() => {
  const graph = angular.element(document.body).injector().get("graph").graph_element;
  const canvas = document.querySelector("canvas[data-id=layer2-node]"), scale = canvas.width / canvas.clientWidth;
  const painted = (box) => canvas.getContext("2d")
    .getImageData(box.x1 * scale, box.y1 * scale, box.w * scale, box.h * scale).data.some((v) => v > 0);
  const nodes = graph.nodes(":visible").map((node) => [node.id(), node.renderedBoundingBox()]);
  return {
    width: canvas.clientWidth, height: canvas.clientHeight,
    nodes: Object.fromEntries(nodes.map(([id, box]) => [id, {...box, painted: painted(box)}])),
    edges: graph.edges(":visible").map((edge) => [edge.source().id(), edge.target().id()]),
  };
}"""


class Seen:
    """A page, what it asked for, and what the browser's console says of it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.set_default_timeout(60_000)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} {message.location['url']}")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown")
    made = subprocess.run(
        [sys.executable, "-m", "tests.e2e.shown", str(folder)], cwd=PACKAGE, text=True, capture_output=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "project"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def docs(project: Path) -> Iterator[str]:
    """The address at which dbt's documentation is served."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(project / "target"))) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


@pytest.fixture
def seen(browser: Any, request: pytest.FixtureRequest) -> Iterator[Seen]:
    """A new page; a test may ask for `viewport` and `color_scheme`."""
    context = browser.new_context(**{"viewport": DESK, **getattr(request, "param", {})})
    yield Seen(context.new_page())
    context.close()


def test_the_documentation_loads_and_its_search_finds_a_table(seen: Seen, docs: str) -> None:
    seen.page.goto(docs)
    seen.page.locator(".menu-tree", has_text="user_project").wait_for()  # before, there is nothing to be found
    seen.page.locator("#search").fill("moving")
    seen.page.locator(".search-result h4", has_text="final_moving").click()
    seen.page.get_by_role("heading", name="final_moving").wait_for()
    assert not [url for url in seen.requests if not url.startswith(docs)]
    assert not [told for told in seen.complaints if not any(name in told for name in NOT_DBTS)]


def test_a_model_tells_what_its_columns_mean_and_of_which_types_they_are(seen: Seen, docs: str) -> None:
    seen.page.goto(f"{docs}#!/model/model.user_project.final_moving")
    row = seen.page.locator("tr.column-row", has_text="amount of the source")
    row.wait_for()
    assert row.locator("td").nth(0).inner_text().strip() == "amount"
    assert row.locator("td").nth(1).inner_text().strip() == "int"
    assert seen.page.locator("tr.column-row", has_text="of the source").count() == 2


def test_the_lineage_is_drawn_from_the_source_to_final(seen: Seen, docs: str) -> None:
    seen.page.goto(f"{docs}#!/model/model.user_project.final_moving?g_v=1&g_i=%2Bfinal_moving")
    seen.page.wait_for_function(f"({GRAPH})().nodes['model.user_project.final_moving']?.painted")
    graph = seen.page.evaluate(GRAPH)
    way = [
        "source.user_project.shop.moving",
        *(f"model.user_project.{name}" for name in ("stg_shop__moving", "int_shop__moving_keys", "final_moving")),
    ]
    for here, there in pairwise(way):
        assert [here, there] in graph["edges"]
        assert graph["nodes"][here]["x2"] < graph["nodes"][there]["x1"]
    for node in graph["nodes"].values():
        assert node["painted"]
        assert 0 <= node["x1"] < node["x2"] <= graph["width"]
        assert 0 <= node["y1"] < node["y2"] <= graph["height"]
    assert "model.user_project.final_plain" not in graph["nodes"]


@pytest.mark.parametrize("seen", [{}, {"viewport": TABLET}, {"viewport": PHONE}], indirect=True, ids=["desk", "tablet", "phone"])
def test_the_report_lists_all_tables_and_asks_for_nothing(seen: Seen, project: Path) -> None:
    address = (project / "target/cdc_report.html").as_uri()
    seen.page.goto(address)
    assert seen.requests == [address]
    assert seen.complaints == []
    tables = seen.page.locator("h2#tables ~ .wide tbody tr")
    assert [table.split()[:2] for table in tables.all_inner_texts()] == [["shop.moving", "ok"], ["shop.plain", "ok"]]
    assert "1 cast:amount" in tables.nth(0).inner_text()
    # nothing is to be looked for at the right of the screen, nor of a table
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert seen.page.locator(".wide").evaluate_all("all => all.every((table) => table.scrollWidth <= table.clientWidth)")
    drawings = seen.page.locator("svg")
    assert drawings.count() == 2 + 2
    for drawing in drawings.all():
        place, bar = drawing.bounding_box(), drawing.locator("rect.bar").first.bounding_box()
        assert bar["width"] >= 1
        assert bar["height"] >= 1
        assert place["x"] <= bar["x"] < bar["x"] + bar["width"] <= place["x"] + place["width"]


@pytest.mark.parametrize("seen", [{"viewport": PHONE}], indirect=True, ids=["phone"])
def test_on_a_phone_every_number_of_a_table_is_in_sight_and_says_what_it_is(seen: Seen, project: Path) -> None:
    seen.page.goto((project / "target/cdc_report.html").as_uri())
    cells = seen.page.locator("h2#tables ~ .wide tbody td[data-what]:visible")
    assert cells.count() >= 8
    for cell in cells.all():
        place = cell.bounding_box()
        assert 0 <= place["x"] < place["x"] + place["width"] <= PHONE["width"]
    labels = cells.evaluate_all("all => all.map((cell) => getComputedStyle(cell, '::before').content)")
    assert {'"lag "', '"changes "', '"final "'} <= set(labels)


@pytest.mark.parametrize("seen", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_the_report_is_read_by_day_and_by_night(seen: Seen, project: Path, request: pytest.FixtureRequest) -> None:
    seen.page.goto((project / "target/cdc_report.html").as_uri())
    contrasts = seen.page.evaluate(CONTRASTS)
    assert {"held", "failed", "late ones", "shop.moving", "ok"} <= {text for text, _ in contrasts}
    assert [(text, contrast) for text, contrast in contrasts if contrast < 4.5] == []
    colors = seen.page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    ground, ink = (sum(int(part) for part in color.strip("rgb()").split(",")) for color in colors)
    assert (ground < ink) == ("dark" in request.node.name)
