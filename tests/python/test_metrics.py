"""What `--metrics` serves, read by Prometheus itself, and its alert rules, checked by promtool."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import nvtx_program
from harness import CACHE, RANKTAP, ROOT

SCRAPE_S = int(os.environ.get('RANKTAP_SCRAPE_S', '8'))
PROMETHEUS = CACHE / 'prometheus/usr/bin'
NO_PROMETHEUS = None if (PROMETHEUS / 'prometheus').exists() else f'no Prometheus at {PROMETHEUS}; scripts/setup --tools unpacks it'


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def fetch(url, accept=None):
    with urllib.request.urlopen(urllib.request.Request(url, headers={'Accept': accept} if accept else {}), timeout=10) as reply:
        return reply.headers['Content-Type'], reply.read().decode()


class DashboardTest(unittest.TestCase):
    def test_it_has_a_panel_for_every_metric_that_an_alert_is_of(self):
        def metrics(text):
            return set(re.findall(r'ranktap_[a-z_]+', text))

        folder = ROOT / 'docs/prometheus'
        panels = json.loads((folder / 'dashboard.json').read_text())['panels']
        alerts = [line for line in (folder / 'alerts.yml').read_text().splitlines() if not line.lstrip().startswith('#')]
        drawn = metrics(' '.join(target['expr'] for panel in panels for target in panel['targets']))
        self.assertLessEqual(metrics(' '.join(alerts)), drawn)
        self.assertLessEqual(drawn, metrics((ROOT / 'docs/metrics.md').read_text()))


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if nvtx_program.HEADERS is None:
            raise unittest.SkipTest('no NVTX headers; scripts/setup installs them')
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        steps = cls.folder / 'steps'
        nvtx_program.build_steps(steps)
        cls.address = f'127.0.0.1:{free_port()}'
        job = f'for rank in 0 1; do RANK=$rank {steps} 20000 1000000 & done; wait'
        command = [RANKTAP, 'run', '--quiet', '--level', 'ranges', '--metrics', cls.address, '-o', cls.folder / 'run', '--', 'sh', '-c', job]
        cls.job = subprocess.Popen(command, start_new_session=True)
        cls.addClassCleanup(cls.end_job)
        end = time.monotonic() + 60
        while 'ranktap_steps_total{' not in cls.page() and time.monotonic() < end:
            time.sleep(0.2)

    @classmethod
    def end_job(cls):
        os.killpg(cls.job.pid, signal.SIGKILL)
        cls.job.wait()

    @classmethod
    def page(cls, accept=None):
        try:
            return fetch(f'http://{cls.address}/metrics', accept)[1]
        except OSError:
            return ''

    def test_who_asks_for_openmetrics_gets_it_and_others_the_older_format(self):
        kind, text = fetch(f'http://{self.address}/metrics', 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5')
        self.assertTrue(kind.startswith('application/openmetrics-text; version=1.0.0'))
        self.assertTrue(text.endswith('# EOF\n'))
        kind, text = fetch(f'http://{self.address}/metrics')
        self.assertTrue(kind.startswith('text/plain; version=0.0.4'))
        self.assertNotIn('# EOF', text)
        self.assertIn('rank="1"', text)

    @unittest.skipIf(NO_PROMETHEUS, NO_PROMETHEUS)
    def test_promtool_finds_nothing_wrong_with_the_page_and_the_alert_rules(self):
        linted = subprocess.run([PROMETHEUS / 'promtool', 'check', 'metrics'], input=self.page(), capture_output=True, text=True)
        self.assertEqual((linted.returncode, linted.stdout + linted.stderr), (0, ''))
        checked = subprocess.run([PROMETHEUS / 'promtool', 'check', 'rules', ROOT / 'docs/prometheus/alerts.yml'], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    @unittest.skipIf(NO_PROMETHEUS, NO_PROMETHEUS)
    def test_prometheus_scrapes_it_once_a_second_and_loses_no_scrape(self):
        config = self.folder / 'prometheus.yml'
        config.write_text('global: {scrape_interval: 1s, evaluation_interval: 1s}\n'
                          f'rule_files: [{ROOT}/docs/prometheus/alerts.yml]\n'
                          f'scrape_configs: [{{job_name: ranktap, honor_labels: true, static_configs: [{{targets: ["{self.address}"]}}]}}]\n')
        own = f'127.0.0.1:{free_port()}'
        with subprocess.Popen([PROMETHEUS / 'prometheus', f'--config.file={config}', f'--storage.tsdb.path={self.folder}/tsdb', f'--web.listen-address={own}'],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as prometheus:
            try:
                def ask(query):
                    try:
                        _, text = fetch(f'http://{own}/api/v1/query?' + urllib.parse.urlencode({'query': query}))
                    except OSError:
                        return []
                    return [float(one['value'][1]) for one in json.loads(text)['data']['result']]

                end = time.monotonic() + 60 + SCRAPE_S
                while sum(ask(f'count_over_time(up[{2 * SCRAPE_S}s])')) < SCRAPE_S and time.monotonic() < end:
                    time.sleep(0.5)
                self.assertEqual(ask(f'min_over_time(up[{2 * SCRAPE_S}s])'), [1])
                self.assertEqual(len(ask('ranktap_step_duration_seconds')), 2)
                rates = ask('rate(ranktap_steps_total[5s])')
                self.assertEqual(len(rates), 2)
                self.assertTrue(all(rate > 1 for rate in rates), rates)
            finally:
                prometheus.terminate()


if __name__ == '__main__':
    unittest.main()
