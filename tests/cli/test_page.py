"""The page of `gpupool report --html` in a headless Chromium: it shows the right numbers, zooms by mouse and keyboard, follows
the scheme, prints, asks for nothing else, and says nothing on the console. Skipped (77) where there is no browser.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

SYSTEM_PYTHON = "/usr/bin/python3"  # the one that has the distribution's selenium
try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and os.path.exists(SYSTEM_PYTHON):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    print("skipped: no selenium")
    sys.exit(77)

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not BROWSER or not DRIVER:
    print("skipped: no Chromium")
    sys.exit(77)

COMMAND = sys.argv.pop(1)
GOLDEN = pathlib.Path(__file__).parent / "golden"
GIB = 1 << 30


def browser(*options):
    chosen = webdriver.ChromeOptions()
    chosen.binary_location = BROWSER
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,1400", *options):
        chosen.add_argument(option)
    chosen.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=chosen)


def report(rank, points):
    """A report whose memory grows from 1 to 3 GiB, with one request refused in the middle."""
    made = json.loads((GOLDEN / f"rank{rank}.json").read_text())
    made["curve_columns"] = ["ms", "reserved", "live", "growth_steps", "migrations", "fences", "oom"]
    made["curve"] = [[i * 10, 4 * GIB, GIB + 2 * GIB * i // points, 1 + i // 100, i // 250, i, 1 if i >= points // 2 else 0]
                     for i in range(points)]
    return made


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.driver = browser()
        if os.environ.get("GPUPOOL_SCREENSHOTS"):
            cls.screenshots = pathlib.Path(os.environ["GPUPOOL_SCREENSHOTS"])

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        cls.holder.cleanup()

    def page(self, *files):
        target = self.folder / f"{self.id()}.html"
        target.unlink(missing_ok=True)
        subprocess.run([COMMAND, "report", *files, "--html", target], check=True)
        self.driver.get(f"file://{target}")
        return target

    def reports(self, ranks, points=1000):
        names = []
        for rank in ranks:
            names.append(self.folder / f"{self.id()}-{rank}.json")
            names[-1].write_text(json.dumps(report(rank, points)))
        return names

    def tearDown(self):
        if hasattr(self, "screenshots"):
            self.driver.save_screenshot(str(self.screenshots / f"{self.id().split('.')[-1]}.png"))
        self.assertEqual(self.driver.get_log("browser"), [])

    def text(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def seen(self):
        return self.driver.execute_script("return [gpupoolView.from, gpupoolView.to]")

    def press(self, selector, key):
        element = self.driver.find_element(By.CSS_SELECTOR, selector)
        self.driver.execute_script("arguments[0].focus()", element)
        self.driver.switch_to.active_element.send_keys(key)

    def test_one_process(self):
        self.page(*self.reports([0]))
        self.assertIn("rank 0 on node1: process 100, /usr/bin/python3", self.text("#process-name"))
        facts = self.text("#facts")
        for row in ("reserved.peak 8 GiB", "live.peak 4 GiB", "requests 100,000", "waste 5.9%", "3 calls past the pool"):
            self.assertIn(row, facts)
        self.assertIn("4 KiB 99,900", self.text("#sizes"))
        self.assertIn("pool.size=5 GiB", self.text("#advice"))
        self.assertIn("reserved and never needed", self.text("#waste"))
        self.assertFalse(self.driver.find_element(By.ID, "ranks").is_displayed())
        self.assertIn("growth: 10", self.text("#curve .keys"))
        self.assertIn("migration: 3", self.text("#curve .keys"))
        self.assertIn("fence: 999", self.text("#curve .keys"))
        self.assertIn("out of memory: 1", self.text("#curve .keys"))
        self.assertIn("16 GiB, above this picture", self.text("#curve .legend"))
        rows = self.driver.execute_script("return drawn[0].graph.file_")
        self.assertEqual([rows[0], rows[-1]], [[0, 4 * GIB, GIB], [9990000, 4 * GIB, GIB + 2 * GIB * 999 // 1000]])

    def test_zoom_by_mouse_and_keyboard(self):
        self.page(*self.reports([0]))
        self.assertEqual(self.seen(), [0, 9990000])
        plot = self.driver.find_element(By.CSS_SELECTOR, "#curve .plot")
        ActionChains(self.driver).move_to_element_with_offset(plot, -100, 0).click_and_hold().move_by_offset(300, 0).release().perform()
        begin, end = self.seen()
        self.assertTrue(1e6 < begin < end < 9e6, (begin, end))
        ActionChains(self.driver).double_click(plot).perform()
        self.assertEqual(self.seen(), [0, 9990000])
        self.press("#curve .plot", "+")
        self.assertEqual(self.seen(), [2497500, 7492500])
        self.press("#curve .plot", "\ue014")  # arrow right
        self.assertEqual(self.seen(), [3496500, 8491500])
        self.press("#curve .plot", "0")
        self.assertEqual(self.seen(), [0, 9990000])

    def test_ranks_side_by_side(self):
        self.page(*self.reports([0, 1, 2]))
        ranks = self.text("#ranks")
        self.assertIn("1/0 8 GiB 6 GiB 6.25 GiB", ranks)
        self.assertIn("spread 0 bytes 2 GiB", ranks)
        self.assertIn("sum 16 GiB 10 GiB", ranks)
        worst = [cell.text for cell in self.driver.find_elements(By.CSS_SELECTOR, "#ranks td.worst")]
        self.assertIn("6 GiB", worst)
        self.assertIn("node1 Example GPU GPU-0000 2 16 GiB 10 GiB", self.text("#cards"))
        self.driver.find_elements(By.CSS_SELECTOR, "#choose option")[1].click()
        self.assertIn("rank 1", self.text("#process-name"))
        self.assertIn("requests 100,001", self.text("#facts"))

    def test_many_points_are_decimated_and_keep_their_extremes(self):
        made = report(0, 100)
        made["curve"] = [[i, 4 * GIB, GIB, 0, 0, 0, 0] for i in range(1_000_000)]
        made["curve"][777_777][2] = 3 * GIB
        file = self.folder / "long.json"
        file.write_text(json.dumps(made))
        self.page(file)
        rows = self.driver.execute_script("return drawn[0].graph.file_")
        self.assertLess(len(rows), 20_000)
        self.assertIn([777_777_000, 4 * GIB, 3 * GIB], rows)

    def test_a_million_events(self):
        chance = random.Random(1)
        lines, live = [], []
        for i in range(1_000_000):
            if live and (len(live) > 2000 or chance.random() < 0.48):
                k = chance.randrange(len(live))
                live[k], live[-1] = live[-1], live[k]
                lines.append(f"f,{live.pop()}\n")
            else:
                lines.append(f"a,{i},{1 << chance.randrange(9, 23)},0\n")
                live.append(i)
        file = self.folder / "million.csv"
        file.write_text("".join(lines))
        self.page(file)
        self.assertEqual(self.seen(), [0, 999_999])
        self.assertRegex(self.text("#map .keys"), r"^50\d,\d{3} blocks")
        self.assertLess(len(self.driver.execute_script("return drawn[0].graph.file_")), 20_000)
        for _ in range(16):
            self.press("#curve .plot", "+")
        begin, end = self.seen()
        self.assertLess(end - begin, 20)
        self.assertRegex(self.text("#map .places"), r"^\+[\d.]+ GiB")
        for _ in range(16):  # back to all of it, drawn each time
            self.press("#curve .plot", "-")
        self.assertEqual(self.seen(), [0, 999_999])

    def test_narrow_screens_scroll_tables_and_nothing_else(self):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        try:
            self.page(*self.reports([0, 1, 2]))
            self.assertLessEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), 400)
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_map_of_a_trace(self):
        file = self.folder / "trace.csv"
        file.write_text("".join(f"a,{i},{1 << 20},0\n" for i in range(64)) + "".join(f"f,{i}\n" for i in range(64)))
        self.page(file)
        self.assertIn("64 blocks over 64 MiB of addresses", self.text("#map .keys"))
        self.assertEqual(self.seen(), [0, 127])
        # Over the first and the last quarter of the addresses, in the middle of the time: everything is live then.
        canvas = self.driver.find_element(By.CSS_SELECTOR, "#map canvas")
        ActionChains(self.driver).move_to_element_with_offset(canvas, 0, canvas.size["height"] // 4).perform()
        self.assertRegex(self.text("#map .legend"), r"^1 MiB at \+(15|16) MiB, from 1[56] to (79|80)$")
        alphas = self.driver.execute_script("""
            const canvas = document.querySelector("#map canvas");
            const {data, width, height} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const alpha = (x, y) => data[4 * (Math.floor(y * height) * width + Math.floor(x * width)) + 3];
            return [alpha(0.5, 0.51), alpha(0.02, 0.05)]""")
        self.assertEqual(alphas, [255, 0])  # live in the middle; at the top left not yet allocated
        self.press("#map canvas", "+")
        self.assertEqual(self.seen(), [31.75, 95.25])
        self.assertIn("addresses +16 MiB to +48 MiB", self.text("#map .legend"))
        self.press("#map canvas", "\ue013")  # arrow up
        self.assertIn("addresses +22.4 MiB to +54.4 MiB", self.text("#map .legend"))
        self.press("#map canvas", "0")
        self.assertIn("addresses +0 bytes to +64 MiB", self.text("#map .legend"))

    def test_what_was_not_recorded_and_what_the_driver_served(self):
        served = GOLDEN / "rank2.json"
        self.page(served)
        self.assertIn("passed_live.peak 4 KiB what the driver served, at its peak", self.text("#facts"))
        trace = self.folder / "small.csv"
        trace.write_text("a,1,1048576,0\nf,1\n")
        self.page(trace)
        self.assertIn("not recorded: ", self.text("#facts"))
        self.page(trace, served)
        self.assertIn("passed_live.peak", self.text("#ranks"))
        self.assertNotIn("migrations", self.text("#ranks"))

    def test_texts_of_a_report_stay_texts(self):
        made = report(0, 10)
        made["process"]["executable"] = "</script><script>document.title='planted'</script><b>"
        made["pools"][0]["card"] = "<img src=x onerror=\"document.title='planted'\">"
        file = self.folder / "hostile.json"
        file.write_text(json.dumps(made))
        self.page(file)
        self.assertEqual(self.driver.title, "gpupool report")
        self.assertIn("</script><script>", self.text("#process-name"))

    def test_light_dark_and_paper(self):
        self.page(*self.reports([0]))
        ground = "return getComputedStyle(document.body).backgroundColor"
        light = self.driver.execute_script(ground)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.assertNotEqual(self.driver.execute_script(ground), light)
        # It is drawn anew when the browser has told the page.
        WebDriverWait(self.driver, 60).until(
            lambda driver: driver.execute_script("return drawn[0].graph.getOption('colors')[1]") == "#5aa9f0")
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        self.assertGreater(len(printed["data"]), 10_000)
        # As wide and as high on paper as it is drawn for it.
        sizes = self.driver.execute_script("""
            const plot = document.querySelector(".plot");
            const seen = () => [plot.clientWidth, plot.clientHeight].join() === [drawn[0].graph.width_, drawn[0].graph.height_].join();
            const before = seen(), width = plot.clientWidth;
            printing(true);
            const paper = seen(), narrow = plot.clientWidth;
            printing(false);
            return [before, paper, seen(), narrow <= 680, plot.clientWidth === width];""")
        self.assertEqual(sizes, [True] * 5)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_it_needs_nothing_else(self):
        target = self.page(*self.reports([0]))
        fetched = self.driver.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertEqual(fetched, [])
        self.assertNotIn("src=\"http", target.read_text())


unittest.main(verbosity=2)
