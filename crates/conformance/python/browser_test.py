"""The pages of the real TensorBoard, in a real browser, for the event files of a demo run.

    python browser_test.py --images docs/images    draws the pictures of the manual
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from playwright.sync_api import sync_playwright

from summary_test import serving_tensorboard

BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
PAGE = {"width": 1280, "height": 800}
# As in the legend.
DEVICES = [f"{job}/replica:0/task:{task}/device:CPU:0" for job, task in [("ps", 0), ("ps", 1), ("worker", 0)]]


def browser_program():
    given = os.environ.get("FLOWGRID_BROWSER")
    found = given or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        raise RuntimeError(
            "no browser: these tests need Chromium (Debian: apt-get install chromium-headless-shell); one that is not "
            "on the PATH can be named in FLOWGRID_BROWSER")
    return found


def run_demo(folder):
    command = [os.environ["FLOWGRID_BIN"], "demo", "--ps", "2", "--workers", "2", "--steps", "400", "--logdir", folder]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if ended.returncode:
        raise RuntimeError(f"the demo failed: {ended.stderr}")


@contextlib.contextmanager
def pages(folder):
    """TensorBoard on a folder; yields a function that opens a page of it in a browser."""
    with serving_tensorboard(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program(), args=["--no-sandbox"])
        page = browser.new_page(viewport=PAGE)
        page.set_default_timeout(60_000)

        def show(plugin):
            page.goto("about:blank")
            page.goto(f"{address}/#{plugin}")
            return page

        yield show
        browser.close()


# The text of a page, including its components.
TEXT = """
(globalThis.text = root => [...root.querySelectorAll('*')].map(element =>
    [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data).join(' ') +
    (element.shadowRoot ? text(element.shadowRoot) : '')).join(' '))
"""


def graph_by_device(show):
    """The page of the graph, coloured by device; returns the page, the names of nodes and the text of the legend."""
    page = show("graphs")
    page.wait_for_selector("tf-graph-scene g.node")
    page.locator("paper-radio-button").get_by_text("Device", exact=True).click()
    page.wait_for_function(f"{TEXT} && text(document).includes('device:CPU:0')")
    nodes = page.locator("tf-graph-scene g.node")
    names = nodes.evaluate_all("all => all.map(node => node.getAttribute('data-name'))")
    fills = nodes.evaluate_all("all => all.map(node => node.querySelector('.nodeshape > *')?.style.fill ?? '')")
    return page, names, fills, page.evaluate(f"{TEXT} && text(document)")


def scalars(show):
    """The page of scalars once all open charts are drawn."""
    page = show("scalars")
    page.wait_for_selector("tf-scalar-card")
    page.wait_for_function(DRAWN, arg="tf-scalar-card")
    return page


def histograms(show):
    page = show("histograms")
    page.wait_for_selector("vz-histogram-timeseries path")
    return page


# True if a card shows a chart: a canvas, or paths with points.
DRAWN = """
name => {
    const all = (root, selector) => {
        const found = [...root.querySelectorAll(selector)];
        for (const element of root.querySelectorAll('*'))
            if (element.shadowRoot) found.push(...all(element.shadowRoot, selector));
        return found;
    };
    const cards = all(document, name);
    const paths = card => all(card.shadowRoot ?? card, 'path').filter(path => (path.getAttribute('d') ?? '').length > 20);
    return cards.length > 0 && paths(cards[0]).length > 0;
}
"""


class BrowserTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.pictures = cls.enterClassContext(tempfile.TemporaryDirectory())
        run_demo(cls.folder)
        cls.show = staticmethod(cls.enterClassContext(pages(cls.folder)))

    def picture(self, page, name):
        """Saves a screenshot. An empty page would give a very small file."""
        path = pathlib.Path(self.pictures, name)
        page.screenshot(path=path)
        self.assertGreater(path.stat().st_size, 10_000)

    def test_the_graph_is_coloured_by_our_devices(self):
        page, names, fills, legend = graph_by_device(self.show)
        self.assertLessEqual({"hidden", "logits"}, set(names))
        self.assertTrue(any("device" in fill for fill in fills), fills)
        for device in DEVICES:
            self.assertIn(device, legend)
        self.picture(page, "graph.png")

    def test_scalars_are_drawn(self):
        page = scalars(self.show)
        text = page.evaluate(f"{TEXT} && text(document)")
        for group in ["cluster", "loss", "worker-0", "worker-1"]:
            self.assertIn(group, text)
        self.picture(page, "scalars.png")

    def test_histograms_are_drawn(self):
        page = histograms(self.show)
        self.assertGreater(page.locator("vz-histogram-timeseries path").count(), 10)
        self.picture(page, "histograms.png")


def draw(folder):
    """The pictures of the documentation."""
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as logs:
        run_demo(logs)
        with pages(logs) as show:
            for name, open_page in [("graph", lambda: graph_by_device(show)[0]), ("scalars", lambda: scalars(show)),
                                    ("histograms", lambda: histograms(show))]:
                page = open_page()
                page.wait_for_timeout(1500)  # until animations have ended
                page.screenshot(path=os.path.join(folder, f"tensorboard-{name}.png"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--images")
    images = parser.parse_known_args()[0].images
    draw(images) if images else unittest.main()
