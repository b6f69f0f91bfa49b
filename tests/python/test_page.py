"""The offline page in a real browser: what it shows are the tables' numbers, and it works without a network."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from harness import CACHE, PROGRAMS, RANKTAP, ROOT

sys.path += [str(path) for path in CACHE.glob('browser-venv/lib/python3*/site-packages')]
CHROMIUM = pathlib.Path('/usr/bin/chromium')
try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None
needs_browser = unittest.skipUnless(
    sync_playwright and CHROMIUM.exists(), 'no Playwright or no chromium here; scripts/setup --tools installs both')

STANDIN = ROOT / 'tests/golden/inputs/standin-full'
DDP = ROOT / 'tests/golden/inputs/torch-ddp'
SCALES = {'ns': {'ns': 1, 'µs': 1e3, 'ms': 1e6, 's': 1e9, 'min': 60e9},
          'bytes': {'B': 1, 'KiB': 2**10, 'MiB': 2**20, 'GiB': 2**30, 'TiB': 2**40}, 'percent': {'%': 1},
          'count': {'': 1, 'k': 1e3, 'M': 1e6, 'G': 1e9, 'T': 1e12, 'P': 1e15, 'E': 1e18}}
SCALES |= {unit: SCALES['count'] for unit in ('flops', 'flops/s', 'GB/s')}


def ranktap(*arguments):
    done = subprocess.run([str(RANKTAP), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def says(text, value, unit):
    """Whether a text of three digits and a unit is the value."""
    number, _, scale = text.replace(',', '').partition(' ')
    factor = SCALES[unit][scale]
    tolerance = max(abs(value) * 0.0051, 0.006 * factor if unit == 'percent' else 0)
    return abs(float(number) * factor - value) <= tolerance


@needs_browser
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.job = cls.folder / 'job'
        subprocess.run([sys.executable, str(PROGRAMS / 'kineto_ranks.py'), '8', '40', str(cls.job)], check=True)
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        cls.browser = cls.playwright.chromium.launch(executable_path=str(CHROMIUM), args=['--no-sandbox'])
        cls.addClassCleanup(cls.browser.close)

    def made(self, *run):
        file = self.folder / ('-'.join(pathlib.Path(part).name for part in run) + '.html')
        if not file.exists():
            ranktap('report', *run, '--format', 'html', '-o', file)
        return file

    def open(self, file, width=1280, **context):
        """The page, after it has painted; what it prints or asks of the network is kept."""
        window = self.browser.new_context(viewport={'width': width, 'height': 900}, **context)
        self.addCleanup(window.close)
        page = window.new_page()
        self.messages, self.requests = [], []
        page.on('console', lambda message: self.messages.append(message.text))
        page.on('pageerror', lambda error: self.messages.append(str(error)))
        page.on('request', lambda request: self.requests.append(request.url))
        page.goto(file.as_uri())
        page.locator('html[data-ready]').wait_for()
        return page

    def check_cells(self, page, run):
        cells = page.evaluate('''() => [...document.querySelectorAll('[data-cell]')].map((e) =>
            [e.dataset.cell, e.dataset.value, e.textContent])''')
        tables = {}
        for address, value, text in cells:
            name, row, column = (address.split('/') + [None])[:3]
            if name not in tables:
                tables[name] = json.loads(ranktap('report', run, name, '--format', 'json'))
            table = tables[name]
            with self.subTest(cell=address):
                if row == 'title':
                    self.assertEqual(text, table['title'])
                    continue
                wanted = table['rows'][int(row)][column]
                self.assertEqual(json.loads(value), wanted)
                if isinstance(wanted, (int, float)):
                    unit = next(c['unit'] for c in table['columns'] if c['name'] == column)
                    self.assertTrue(says(text, wanted, unit), f'{text} is not {wanted} {unit}')
        return len(cells)

    def test_every_number_is_the_cell_of_a_table(self):
        for run, least in (STANDIN, 100), (DDP, 200), (self.job, 300):
            with self.subTest(run=run.name):
                self.assertGreater(self.check_cells(self.open(self.made(run)), run), least)

    def test_it_prints_nothing_and_asks_the_network_for_nothing(self):
        file = self.made(self.job)
        page = self.open(file, offline=True)
        self.assertEqual(self.messages, [])
        self.assertEqual(self.requests, [file.as_uri()])
        # The policy forbids it, not only the offline browser: that would be another error.
        page = self.open(file)
        blocked = page.evaluate('''() => new Promise((done) => {
            document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));
            fetch('http://127.0.0.1:9/').catch(() => {});
            setTimeout(() => done('nothing'), 5000);
        })''')
        self.assertEqual(blocked, 'connect-src')

    def test_names_cannot_end_the_script_that_holds_them(self):
        run = self.folder / 'evil.json'
        name = '</script><img src=x onerror=document.title="owned"><!--'
        run.write_text(json.dumps({'traceEvents': [
            {'ph': 'X', 'cat': 'kernel', 'name': name, 'pid': 0, 'tid': 7, 'ts': 10, 'dur': 5,
             'args': {'device': 0, 'stream': 7, 'correlation': 1}}]}))
        page = self.open(self.made(run))
        self.assertEqual(page.locator('#kernels tbody tr').count(), 1)
        self.assertIn('</script>', page.locator('#kernels td [data-cell]').first.get_attribute('data-value'))
        self.assertNotEqual(page.title(), 'owned')

    def brush(self, page, left, top, right, bottom):
        page.locator('#heatmap').scroll_into_view_if_needed()
        box = page.locator('#heatmap .brush-layer rect.overlay').bounding_box()
        page.mouse.move(box['x'] + left * box['width'], box['y'] + top * box['height'])
        page.mouse.down()
        page.mouse.move(box['x'] + right * box['width'], box['y'] + bottom * box['height'], steps=5)
        page.mouse.up()

    def test_the_brush_of_the_heat_map_filters_what_is_below(self):
        page = self.open(self.made(self.job))
        lanes = page.locator('#lanes .command code')
        before = lanes.text_content()
        self.assertTrue(page.locator('#kernels td.extra').first.is_hidden())
        self.brush(page, 0.6, 0.3, 0.7, 0.45)
        said = page.locator('#heatmap .selected-text').text_content()
        self.assertRegex(said, r'^rank [23] to rank 3, steps \d+ to \d+$')
        self.assertNotEqual(lanes.text_content(), before)
        self.assertTrue(page.locator('#kernels td.extra').first.is_visible())
        self.assertRegex(page.locator('#kernels td.extra').first.text_content(), r'[1-9]')
        self.assertGreater(page.locator('#waits tr.dim').count(), 4)
        self.assertRegex(page.locator('#comm td.extra').first.text_content(), r'[1-9]')
        page.get_by_role('button', name='clear selection').click()
        self.assertEqual(lanes.text_content(), before)
        self.assertEqual(page.locator('tr.dim').count(), 0)

    def test_the_brushed_steps_add_up_to_the_waterfall_of_their_steps(self):
        page = self.open(self.made(self.job))
        self.brush(page, 0.001, 0.01, 0.999, 0.99)
        rows = page.evaluate('''() => [...document.querySelectorAll('#waterfall tbody tr')].map((row) =>
            [row.children[1].textContent, row.lastChild.textContent])''')
        for mean, selected in rows:  # all steps: the table's own means, in three digits
            number = [float(text.split()[0]) for text in (mean, selected)]
            self.assertAlmostEqual(number[0], number[1], delta=0.015 * number[0], msg=f'{mean} {selected}')

    def test_all_steps_brushed_are_the_tables_own_sums_of_kernels_and_collectives(self):
        page = self.open(self.made(self.job))
        page.evaluate('ranktap.selection.set([0, ranktap.page.steps.length - 1], [0, d3.max(ranktap.page.steps, (rank) => rank.us.length) - 1])')
        sums = page.evaluate('''() => {
            const kernels = ranktap.tableOf('kernels');
            const comm = ranktap.tableOf('comm');
            const of = ranktap.timesInSelection(ranktap.page.times.kernels, (kernel) => kernel.name);
            const call = ranktap.timesInSelection(ranktap.page.times.collectives, (entry) => `${entry.type} ${entry.bytes}`);
            return [kernels.rowsWhere(() => true).map((row) => [kernels.at(row, 'total_ns'), of.of(kernels.at(row, 'name'))]),
                comm.rowsWhere(() => true).map((row) => [comm.at(row, 'kernel_ns') * comm.at(row, 'calls') * comm.at(row, 'group_size'),
                    call.of(`${comm.at(row, 'type')} ${comm.at(row, 'bytes')}`)])];
        }''')
        steps = page.evaluate('ranktap.page.steps[0].us.length') / 40  # the first five are no steps of the trace
        for whole, selected in [*sums[0], *sums[1]]:
            self.assertAlmostEqual(steps * whole, selected, delta=0.02 * whole, msg=str(sums))

    def test_a_step_inside_of_a_bucket_is_of_the_selection(self):
        page = self.open(self.made(self.job))
        seen = page.evaluate('''() => {
            ranktap.page.times.steps_per_bucket = 3;
            ranktap.selection.set([0, 0], [1, 1]);
            return ranktap.timesInSelection(ranktap.page.times.kernels, (kernel) => kernel.name).of(ranktap.page.times.kernels[0].name);
        }''')
        self.assertGreater(seen, 0)

    def test_bandwidth_points_without_a_call_in_the_selection_are_dimmed(self):
        page = self.open(self.made(self.job))
        page.evaluate("""() => { const of = ranktap.page.times.collectives;
            const zero = (entry) => entry.us.fill(0);
            of.filter((entry) => entry.bytes !== of[0].bytes).forEach(zero); }""")
        self.assertEqual(page.locator('#comm circle.dim').count(), 0)
        self.brush(page, 0.5, 0.01, 0.6, 0.99)
        points, dim = page.locator('#comm circle').count(), page.locator('#comm circle.dim').count()
        self.assertGreater(points, 0)
        self.assertEqual(dim, page.evaluate("""() => { const t = ranktap.tableOf('comm');
            return t.rowsWhere((row) => t.at(row, 'busbw_gb_per_s') > 0 && t.at(row, 'bytes') > 0
                && t.at(row, 'bytes') !== ranktap.page.times.collectives[0].bytes).length; }"""))

    def test_the_flame_graph_and_the_memory_curve_follow_the_selected_ranks(self):
        page = self.open(self.made(DDP))
        page.evaluate("""() => { window.roots = [];
            const replaced = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function(text, ...rest) {
                if (/^rank \\d/.test(text) && this.canvas.closest('#flame')) window.roots.push(text);
                return replaced.call(this, text, ...rest); }; }""")
        page.locator('#flame').scroll_into_view_if_needed()
        steps = page.evaluate('ranktap.page.steps[1].us.length')
        page.evaluate(f'window.roots = []; ranktap.selection.set([1, 1], [0, {steps - 2}])')
        self.assertEqual(set(page.evaluate('window.roots')), {'rank 1'})
        self.assertEqual(page.locator('#memory .selected-time').count(), 1)
        box, curve = (page.locator(f'#memory {part}').bounding_box() for part in ('.selected-time', 'svg.plot'))
        self.assertGreater(box['width'], 5)
        self.assertLess(box['width'], curve['width'])
        page.evaluate('window.roots = []')
        page.get_by_role('button', name='clear selection').click()
        self.assertEqual(set(page.evaluate('window.roots')), {'rank 0', 'rank 1'})
        self.assertEqual(page.locator('#memory .selected-time').count(), 0)

    def test_findings_of_ranks_that_are_not_selected_are_dimmed(self):
        page = self.open(self.made(self.job))
        ranks = page.evaluate('''() => { const t = ranktap.tableOf('insights');
            return t.rowsWhere(() => true).map((row) => t.at(row, 'ranks') > 1 ? null : t.at(row, 'rank')); }''')
        self.brush(page, 0.5, 0.01, 0.6, 0.1)  # rank 0
        dimmed = page.locator('#insights ol.insights > li').evaluate_all('(items) => items.map((item) => item.classList.contains("dim"))')
        self.assertEqual(dimmed, [rank is not None and rank != 0 for rank in ranks])

    def test_the_exported_window_is_one_that_ranktap_takes(self):
        page = self.open(self.made(self.job))
        self.brush(page, 0.5, 0.01, 0.6, 0.99)
        words = page.locator('#lanes .command code').text_content().split()
        self.assertEqual(words[:2], ['ranktap', 'export'])
        out = self.folder / 'window.pftrace'
        ranktap(*words[1:-1], out)
        self.assertGreater(out.stat().st_size, 100)

    def test_tables_sort_and_search(self):
        page = self.open(self.made(self.job))
        page.locator('#kernels th[data-column=calls] button').click()
        values = [json.loads(e) for e in page.locator('#kernels [data-cell$="/calls"]').evaluate_all(
            'all => all.map((e) => e.dataset.value)')]
        self.assertEqual(values, sorted(values, reverse=True))
        page.locator('#kernels input[type=search]').fill('nccl')
        names = page.locator('#kernels [data-cell$="/name"]')
        self.assertEqual(names.count(), 1)
        self.assertIn('nccl', names.first.text_content())
        self.assertEqual(page.locator('#kernels .count').text_content(), '1 row')

    def test_keys_alone_select_and_zoom(self):
        page = self.open(self.made(self.job))
        page.locator('#heat').focus()
        for key in 'ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowDown':
            page.keyboard.press(key)
        self.assertRegex(page.locator('#heatmap .selected-text').text_content(), r'^rank 0 to rank 1, ')
        page.keyboard.press('Escape')
        self.assertEqual(page.locator('#heatmap .selected-text').text_content(), '')
        window = page.locator('#lanes .command code')
        before = window.text_content()
        page.locator('#lanes-canvas').focus()
        page.keyboard.press('+')
        self.assertNotEqual(window.text_content(), before)
        page.keyboard.press('0')
        self.assertEqual(window.text_content(), before)

    def test_a_phone_shows_all_of_it_without_scrolling_sideways(self):
        for run in self.job, STANDIN, DDP:
            page = self.open(self.made(run), width=390)
            self.assertLessEqual(page.evaluate('document.documentElement.scrollWidth'), 390)
            self.assertEqual(self.messages, [])

    def test_dark_screens_get_a_dark_page_and_paper_a_white_one(self):
        page = self.open(self.made(self.job), color_scheme='dark')

        def light():
            colour = page.evaluate('getComputedStyle(document.body).backgroundColor')
            return sum(map(int, re.findall(r'\d+', colour)[:3]))

        self.assertLess(light(), 150)
        page.emulate_media(color_scheme='light')
        self.assertGreater(light(), 600)
        page.emulate_media(media='print')
        self.assertEqual(light(), 3 * 255)
        self.assertTrue(page.locator('nav').is_hidden())

    def test_sections_without_data_say_what_to_record(self):
        page = self.open(self.made(STANDIN))
        self.assertIn('--level full', page.locator('#modules .empty').text_content())
        self.assertIn('simulated', page.locator('.trust').text_content())
        self.assertEqual(page.locator('text=could not be drawn').count(), 0)

    def test_the_stages_stand_in_the_order_of_questions(self):
        page = self.open(self.made(self.job))
        ids = page.locator('main > section').evaluate_all('all => all.map((e) => e.id)')
        self.assertEqual(ids, ['verdict', 'figures', 'waterfall', 'heatmap', 'waits', 'lanes', 'comm', 'memory', 'modules',
                               'roofline', 'kernels', 'ops', 'insights', 'flame', 'environment'])
        for target in page.locator('main a[href^="#"]').evaluate_all('all => all.map((e) => e.getAttribute("href"))'):
            self.assertEqual(page.locator(target).count(), 1, target)

    def test_two_runs_have_a_page_of_their_difference(self):
        file = self.folder / 'diff.html'
        ranktap('report', STANDIN, STANDIN, 'diff', '--format', 'html', '-o', file)
        page = self.open(file)
        self.assertEqual(self.messages, [])
        rows = json.loads(ranktap('report', STANDIN, STANDIN, 'diff', '--format', 'json'))['rows']
        shown = page.locator('#changes [data-cell$="/after_ns"]').evaluate_all('all => all.map((e) => [e.dataset.cell, e.dataset.value])')
        self.assertGreater(len(shown), 3)
        for address, value in shown:
            self.assertEqual(json.loads(value), rows[int(address.split('/')[1])]['after_ns'])
        self.assertEqual(page.locator('.side .stack').count(), 2)


if __name__ == '__main__':
    unittest.main()
