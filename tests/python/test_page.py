"""The offline page in a real browser: what it shows are the tables' numbers, and it works without a network."""
import json
import pathlib
import re
import shlex
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


# In the order of the bar, or often side by side in lanes and in the memory's curve.
ORDER = ['compute', 'exposed-transfer', 'exposed-wait', 'memory-copy', 'not-recorded', 'checkpoint', 'garbage-collection',
         'data-loading', 'graph-capture', 'sync', 'host', 'kernel-latency', 'dependency', 'optimizer', 'backward', 'forward']
SERIES = [f'series-{number}' for number in range(1, 9)]
NEIGHBOURS = [*zip(ORDER, ORDER[1:]), *zip(SERIES, SERIES[1:]), ('not-recorded', 'series-1'),
              *((one, 'host') for one in ORDER if one not in ('host', 'not-recorded')),
              *((one, 'data-loading') for one in ('forward', 'backward', 'optimizer')), ('backward', 'optimizer'),
              ('compute', 'kernel-latency'), ('compute', 'dependency'), ('compute', 'exposed-wait'),
              ('exposed-wait', 'backward'), ('exposed-wait', 'dependency'), ('exposed-transfer', 'dependency')]


def light(colour):
    numbers = [int(colour[at:at + 2], 16) for at in (1, 3, 5)] if colour.startswith('#') else [
        float(number) for number in re.findall(r'[\d.]+', colour)[:3]]
    parts = [number / 255 / 12.92 if number <= 10 else ((number / 255 + 0.055) / 1.055) ** 2.4 for number in numbers]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts))


def contrast(one, other):
    """As WCAG 2 computes it."""
    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


# Texts of the page that are below 4.5:1, with what they stand on.
CONTRAST = '''() => {
    const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
    const over = (a, b) => a.slice(0, 3).map((part, i) => part * a[3] + b[i] * (1 - a[3]));
    const light = (rgb) => { const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const ground = (element) => { if (element === null) return [255, 255, 255];
        const colour = parse(getComputedStyle(element).backgroundColor);
        return colour[3] === 1 ? colour.slice(0, 3) : over(colour, ground(element.parentElement)); };
    const opacity = (element) => (element === null ? 1 : Number(getComputedStyle(element).opacity) * opacity(element.parentElement));
    const pale = [];
    for (const element of document.querySelectorAll('body *')) {
        if (element.closest('svg, script, style, noscript, #tip, .sr, .skip') || element.getClientRects().length === 0) continue;
        const own = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent.trim()).join('');
        if (own === '') continue;
        const below = ground(element), colour = parse(getComputedStyle(element).color);
        colour[3] *= opacity(element);
        const [high, low] = [light(over(colour, below)), light(below)].sort((a, b) => b - a);
        if ((high + 0.05) / (low + 0.05) < 4.5) pale.push(`${own.slice(0, 40)} ${((high + 0.05) / (low + 0.05)).toFixed(2)}`);
    }
    return pale; }'''


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

    def open(self, file, width=1280, fragment='', **context):
        """The page, after it has painted; what it prints or asks of the network is kept."""
        window = self.browser.new_context(viewport={'width': width, 'height': 900}, **context)
        self.addCleanup(window.close)
        page = window.new_page()
        self.messages, self.requests = [], []
        page.on('console', lambda message: self.messages.append(message.text))
        page.on('pageerror', lambda error: self.messages.append(str(error)))
        page.on('request', lambda request: self.requests.append(request.url))
        page.goto(file.as_uri() + fragment)
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

    def fragment(self, page, *parts):
        """The address's, once it has all parts."""
        page.wait_for_function('(parts) => parts.every((part) => location.hash.includes(part))', arg=list(parts))
        return page.evaluate('location.hash')

    def view(self, page):
        return page.evaluate('''() => ({ranks: ranktap.selection.ranks, steps: ranktap.selection.steps,
            window: document.querySelector('#lanes .command code').textContent,
            kernels: [...document.querySelectorAll('#kernels [data-cell$="/name"]')].map((e) => e.dataset.value),
            sort: document.querySelector('#kernels [aria-sort=descending]')?.dataset.column,
            fields: [...document.querySelectorAll('input[type=search]')].map((e) => e.value),
            pressed: [...document.querySelectorAll('[aria-pressed=true]')].map((e) => e.textContent)})''')

    def test_the_address_holds_what_one_looks_at(self):
        page = self.open(self.made(self.job))
        at_first = self.view(page)
        self.brush(page, 0.6, 0.3, 0.7, 0.45)
        page.locator('#lanes-canvas').focus()
        page.keyboard.press('+')
        page.locator('#kernels th[data-column=calls] button').click()
        page.locator('#kernels input[type=search]').fill('e')
        page.locator('#modules input[type=search]').fill('Linear')
        page.get_by_role('button', name='excess over').click()
        page.locator('nav a[href="#kernels"]').click()
        fragment = self.fragment(page, '#kernels&', 'ranks=', 'steps=', 'lanes=', 'sort.kernels=-calls', 'q.kernels=e',
                                 'q.modules=Linear', 'colour=excess')
        seen = self.view(page)
        self.assertNotEqual(seen, at_first)
        again = self.open(self.made(self.job), fragment=fragment)
        self.assertEqual(self.view(again), seen)
        self.assertEqual(self.messages, [])
        self.assertLess(abs(again.locator('#kernels').bounding_box()['y'] - 92), 60)
        again.evaluate("location.hash = ''")
        again.wait_for_function('ranktap.selection.ranks === null')
        self.assertEqual(self.view(again), at_first)

    def test_the_part_of_a_picture_that_has_the_focus_is_in_the_address(self):
        page = self.open(self.made(DDP))
        canvas = page.locator('#modules canvas')
        canvas.focus()
        for _ in range(2):
            page.keyboard.press('ArrowDown')
        fragment = self.fragment(page, 'modules=')
        path = fragment.split('modules=')[1].split('&')[0]
        self.assertEqual(len(path.split('/')), 2, path)
        again = self.open(self.made(DDP), fragment=fragment)
        again.locator('#modules canvas').focus()
        again.keyboard.press('ArrowUp')
        shorter = again.wait_for_function("() => !/modules=[^&]*[/]/.test(location.hash) && location.hash")
        self.assertTrue(shorter)

    def test_a_slash_goes_to_the_search_in_view_and_a_question_mark_lists_the_keys(self):
        page = self.open(self.made(self.job))
        page.locator('#kernels').scroll_into_view_if_needed()
        page.evaluate("document.getElementById('kernels').scrollIntoView({block: 'center', behavior: 'instant'})")
        page.keyboard.press('/')
        self.assertEqual(page.evaluate('document.activeElement.getAttribute("aria-label")'), 'search kernels')
        page.keyboard.type('?/')  # in a field these are letters
        self.assertEqual(page.locator('#kernels input').input_value(), '?/')
        page.evaluate('document.activeElement.blur()')
        page.keyboard.press('?')
        self.assertTrue(page.locator('dialog#keys').is_visible())
        page.keyboard.press('Escape')
        self.assertFalse(page.locator('dialog#keys').is_visible())

    def texts_in(self, page, selector, act):
        page.evaluate('''(selector) => { window.texts = [];
            const replaced = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function(text, ...rest) {
                if (this.canvas.matches(selector)) window.texts.push([text, this.fillStyle, window.ground]);
                return replaced.call(this, text, ...rest); };
            const filled = CanvasRenderingContext2D.prototype.fillRect;
            CanvasRenderingContext2D.prototype.fillRect = function(...rest) {
                if (this.globalAlpha === 1) window.ground = this.fillStyle;
                return filled.call(this, ...rest); }; }''', selector)
        act()
        return page.evaluate('window.texts')

    def test_a_search_in_the_lanes_finds_a_kernel_by_name_and_goes_there(self):
        page = self.open(self.made(self.job))
        longest = max((event for event in json.loads((self.job / 'rank0.json').read_text())['traceEvents']
                       if event.get('cat') == 'kernel'), key=lambda event: event['dur'])
        field = page.locator('#lanes input[type=search]')
        field.fill(longest['name'][:12])
        self.assertRegex(page.locator('#lanes .names .count').first.text_content(), r'^[1-9]\d* found')
        texts = self.texts_in(page, '#names-canvas', lambda: field.press('Enter'))
        self.assertTrue(any(longest['name'][:12] in text for text, _, _ in texts), texts)
        begin, end = re.search(r'--window ([\d.]+)s:([\d.]+)s', page.locator('#lanes .command code').text_content()).groups()
        self.assertLess(float(end) - float(begin), 13 * longest['dur'] / 1e6)

    def test_text_is_4_5_times_as_light_or_dark_as_what_is_below_it(self):
        for scheme in 'light', 'dark':
            for run in self.job, DDP, STANDIN:
                page = self.open(self.made(run), color_scheme=scheme)
                self.brush(page, 0.5, 0.01, 0.6, 0.1)  # dims what is not selected
                pale = page.evaluate(CONTRAST)
                self.assertEqual(pale, [], f'{scheme}, {run.name}')

    def test_words_in_pictures_are_as_easy_to_read(self):
        page = self.open(self.made(DDP))
        for picture in '#modules', '#flame':
            page.locator(f'{picture} canvas').scroll_into_view_if_needed()
            texts = self.texts_in(page, f'{picture} canvas', lambda: page.keyboard.press('ArrowDown') or page.evaluate(
                'ranktap.selection.set([0, 0], [0, 0])'))
            self.assertGreater(len(texts), 1)
            for text, ink, ground in texts:
                self.assertGreaterEqual(contrast(ink, ground), 4.5, f'{text}: {ink} on {ground}')

    def test_colours_that_lie_side_by_side_differ_in_light_by_half(self):
        page = self.open(self.made(self.job))
        for scheme in 'light', 'dark':
            page.emulate_media(color_scheme=scheme)
            colours = page.evaluate('''() => { const style = getComputedStyle(document.documentElement);
                const all = [...document.styleSheets[0].cssRules[0].style].filter((name) => /^--(cause|series|card)/.test(name));
                return Object.fromEntries(all.map((name) => [name.slice(2), style.getPropertyValue(name).trim()])); }''')
            causes = [name for name in colours if name.startswith('cause')]
            self.assertEqual({name.removeprefix('cause-') for name in causes}, {*ORDER, 'exposed-communication'})
            for one, other in [*NEIGHBOURS, *((cause.removeprefix('cause-'), 'card') for cause in causes)]:
                pair = [colours.get(name) or colours['cause-' + name] for name in (one, other)]
                self.assertGreaterEqual(contrast(*pair), 1.5, f'{one} beside {other}, {scheme}')

    def test_commands_quote_the_files_that_were_opened(self):
        folder = self.folder / 'two of them'
        folder.mkdir(exist_ok=True)
        for rank in 0, 1, 2:
            (folder / f'rank{rank}.json').write_text((self.job / f'rank{rank}.json').read_text())
        page = self.open(self.made(folder / 'rank0.json', folder / 'rank1.json'))
        copied = page.locator('#lanes .command code').text_content()
        self.assertEqual(shlex.split(copied)[2:4], [str(folder / f'rank{rank}.json') for rank in (0, 1)])

    def test_a_name_of_an_operator_is_shown_whole(self):
        run = self.folder / 'loader.json'
        name = 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__'
        run.write_text(json.dumps({'traceEvents': [
            {'ph': 'X', 'cat': 'user_annotation', 'name': name, 'pid': 1, 'tid': 7, 'ts': 10, 'dur': 5, 'args': {}},
            {'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::mm', 'pid': 1, 'tid': 7, 'ts': 20, 'dur': 5, 'args': {}}]}))
        page = self.open(self.made(run))
        self.assertIn(name, page.locator('#ops td.text').all_text_contents())

    def test_evidence_lies_where_something_is_shown(self):
        for run in self.job, STANDIN, DDP:
            page = self.open(self.made(run))
            for target in page.locator('#insights a').evaluate_all('all => all.map((e) => e.getAttribute("href"))'):
                self.assertEqual(page.locator(f'{target} .empty').count(), 0, target)

    def test_memory_of_before_the_trace_is_a_band_below_the_curve(self):
        page = self.open(self.made(self.job))
        before = page.evaluate('''() => { const t = ranktap.tableOf('memory-peak');
            return t.rowsWhere((row) => /before the trace/.test(t.at(row, 'held_by'))).map((row) => t.at(row, 'bytes'))[0]; }''')
        self.assertGreater(before, 0)
        self.assertIn('allocated before the trace', page.locator('#memory .legend').text_content())
        curve = page.locator('#memory svg.plot')
        # The mark of the peak and the highest point of the picture are one place, to the pixel's row.
        marked = page.locator('#memory .peak text').text_content()
        self.assertTrue(says(marked.removeprefix('peak '), page.evaluate(
            "ranktap.tableOf('memory').at(0, 'peak_bytes')"), 'bytes'))
        top = curve.evaluate('''(svg) => Math.min(...[...svg.querySelectorAll('path')]
            .filter((path) => path.__data__ && path.__data__.key).map((path) => path.getBBox().y))''')
        axis = curve.evaluate('''(svg) => [...svg.querySelectorAll('.axis.grid .tick')].map((tick) =>
            [tick.__data__, tick.transform.baseVal[0].matrix.f])''')
        (low, at_low), (high, at_high) = axis[0], axis[-1]
        drawn = low + (top - at_low) * (high - low) / (at_high - at_low)
        peak = page.evaluate("ranktap.tableOf('memory').at(0, 'peak_bytes')")
        self.assertAlmostEqual(drawn, peak, delta=0.03 * peak)

    def test_no_table_is_wider_than_its_card_on_a_laptop(self):
        for run in self.job, STANDIN, DDP:
            page = self.open(self.made(run), width=1440)
            self.assertEqual(page.evaluate("""() => [...document.querySelectorAll('.scroll')]
                .filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.closest('section').id)"""), [])

    def test_who_waits_for_whom_names_what_the_late_rank_spends_more_on(self):
        page = self.open(self.made(self.job), width=1440)
        row = page.locator('#waits tbody tr').first
        self.assertIn('compute +', row.text_content())
        self.assertIn('most in sm90_xmma_gemm', row.text_content())

    def test_headings_of_numbers_end_where_they_do_and_no_column_of_words_is_empty(self):
        for run in STANDIN, DDP:
            page = self.open(self.made(run), width=1440)
            columns = page.evaluate("""() => [...document.querySelectorAll('.table table')].filter((table) => table.tBodies[0].rows.length)
                .flatMap((table) => [...table.tHead.rows[0].cells].filter((head) => head.offsetWidth > 0).map((head) => {
                    const cells = [...table.tBodies[0].rows].map((row) => row.cells[head.cellIndex]);
                    const end = (of) => { const range = document.createRange(); range.selectNodeContents(of);
                        return range.getBoundingClientRect().right; };
                    return [head.closest('section').id + ' ' + head.textContent, head.classList.contains('text'), end(head),
                        Math.max(...cells.map(end)), cells.some((one) => one.textContent)]; }))""")
            self.assertGreater(len(columns), 20)
            for name, is_text, head, cells, is_filled in columns:
                if is_text:
                    self.assertTrue(is_filled, name)
                else:
                    self.assertAlmostEqual(head, cells, delta=1.5, msg=name)

    def test_on_paper_no_number_is_broken_and_no_table_is_wider_than_the_sheet(self):
        page = self.open(self.made(STANDIN), width=718)
        page.emulate_media(media='print')
        self.assertEqual(page.evaluate("""() => [...document.querySelectorAll('.table td:not(.text)')]
            .filter((cell) => cell.offsetHeight > 0 && [...cell.childNodes].some((part) => { const range = document.createRange();
                range.selectNodeContents(part); return range.getBoundingClientRect().height > 20; })).map((cell) => cell.textContent)"""), [])
        self.assertEqual(page.evaluate("""() => [...document.querySelectorAll('.scroll')]
            .filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.closest('section').id)"""), [])

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

    def test_the_page_of_two_runs_begins_with_a_sentence_and_colours_what_is_worse(self):
        file = self.folder / 'slower.html'
        ranktap('report', self.job, DDP, 'diff', '--format', 'html', '-o', file)
        page = self.open(file)
        self.assertEqual(self.messages, [])
        self.assertRegex(page.locator('#verdict .sentence').text_content(), r'^[A-Z].*\.$')
        cells = page.locator('#changes [data-cell$="/diff_ns"]').evaluate_all(
            'all => all.map((e) => [JSON.parse(e.dataset.value), e.parentElement.className])')
        self.assertGreater(len(cells), 5)
        for value, state in cells:
            self.assertEqual(state, 'worse' if value > 0 else 'better' if value < 0 else '')


if __name__ == '__main__':
    unittest.main()
