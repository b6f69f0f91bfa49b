"""The collector's service as the package installs it, under a real systemd: it serves users, is started again below
them by an upgrade, and goes with the package."""
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import container_engine
import harness
import old_root
from container_engine import NETWORK, Podman
from nvtx_program import build_program
from test_packages import with_version

SUITE = 'bullseye'  # its systemd takes control groups of either version
SERVICE = 'ranktap-collector'
SOCKET = '/run/ranktap/collector.sock'
PROGRAM = '''
import ctypes
work = ctypes.CDLL('/try/libwork.so').work
work()
open('/tmp/began', 'w').write('now')
open('/tmp/go').read()
work()
'''
AS_A_USER = f'''
export $(ranktap collect --print-env --socket {SOCKET})
exec setpriv --reuid 1000 --regid 1000 --clear-groups python3 /try/program.py
'''


class ServiceTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        reason = Podman.why_not() or container_engine.why_no_images(SUITE)
        if reason:
            container_engine.skip(reason)
        root = old_root.ROOTS / SUITE
        if not (root / 'lib/systemd/systemd').exists():
            container_engine.skip(f'no systemd in {root}; scripts/setup --packages installs it')
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o755)
        cls.programs, cls.dist = cls.folder / 'try', cls.folder / 'dist'
        cls.programs.mkdir()
        build_program(cls.programs / 'libwork.so', is_library=True)
        (cls.programs / 'program.py').write_text(PROGRAM)
        (cls.programs / 'as-a-user').write_text(AS_A_USER)
        subprocess.run([harness.ROOT / 'scripts/package', 'deb', '--build', harness.BUILD, '--out', cls.dist],
                       check=True, capture_output=True)
        cls.package = next(cls.dist.glob('*.deb'))
        cls.newer = with_version(cls.package, '99.0', cls.dist)
        cls.engine = Podman(cls.folder)
        cls.addClassCleanup(cls.engine.close)
        cls.engine.import_root(root, 'localhost/debian')
        cls.engine.skip_where_no_container_starts('localhost/debian')

    def boot(self):
        self.machine = self.engine.must('run', '-d', '--systemd=always', *NETWORK, '-v', f'{self.programs}:/try:ro', '-v',
                                        f'{self.dist}:/dist:ro', 'localhost/debian', '/lib/systemd/systemd').strip()
        self.addCleanup(self.engine.ask, 'rm', '-f', '-t', '0', self.machine)
        state = self.until(lambda: re.match('running|degraded', self.engine.ask(
            'exec', self.machine, 'systemctl', 'is-system-running').stdout), 'systemd came up')
        self.assertTrue(state)

    def on_machine(self, *words):
        return self.engine.must('exec', self.machine, *words)

    def until(self, condition, what):
        end = time.monotonic() + 60
        while not (answer := condition()):
            self.assertLess(time.monotonic(), end, f'not seen in a minute: {what}')
            time.sleep(0.02)
        return answer

    def service(self, *properties):
        words = [word for name in properties for word in ('-p', name)]
        return dict(line.split('=', 1) for line in self.on_machine('systemctl', 'show', *words, SERVICE).splitlines())

    def process_of(self, collector):
        """What the collector says of the one process it serves, or None."""
        said = self.on_machine('ranktap', 'status', '--socket', SOCKET)
        self.assertIn(f'pid {collector}, at {SOCKET}', said)
        return re.search(r' connected +kernels ', said)

    def test_an_upgrade_starts_the_service_again_below_a_running_program_and_loses_nothing(self):
        self.boot()
        self.on_machine('dpkg', '-i', f'/dist/{self.package.name}')
        self.assertEqual(self.service('ActiveState', 'UnitFileState'),
                         {'ActiveState': 'inactive', 'UnitFileState': 'disabled'})
        self.on_machine('systemctl', 'enable', '--now', SERVICE)
        first = self.service('MainPID', 'ActiveState')
        self.assertEqual(first['ActiveState'], 'active')

        self.on_machine('mkfifo', '-m', '666', '/tmp/go')
        self.engine.must('exec', '-d', self.machine, 'sh', '/try/as-a-user')
        self.until(lambda: self.engine.ask('exec', self.machine, 'test', '-f', '/tmp/began').returncode == 0,
                   'the program began')
        self.until(lambda: self.process_of(first['MainPID']), 'the program is served')

        self.on_machine('dpkg', '-i', f'/dist/{self.newer.name}')
        second = self.service('MainPID', 'ActiveState', 'NRestarts')
        self.assertEqual((second['ActiveState'], second['NRestarts']), ('active', '0'))
        self.assertNotEqual(second['MainPID'], first['MainPID'])
        self.until(lambda: self.process_of(second['MainPID']), 'the program is served by the new collector')

        self.on_machine('sh', '-c', 'echo > /tmp/go')
        self.until(lambda: not self.process_of(second['MainPID']), 'the program ended')
        self.on_machine('systemctl', 'stop', SERVICE)
        self.assertEqual(self.service('ActiveState', 'Result'), {'ActiveState': 'inactive', 'Result': 'success'})
        said = self.on_machine('sh', '-c', 'ranktap verify /var/lib/ranktap/1000/*')
        events = [int(count) for count in re.findall(r'\.trace: ok, (\d+) events in .*, 0 declared lost', said)]
        self.assertEqual(sum(events), 24, said)  # two threads, three ranges each, twice; a push and a pop each

        self.on_machine('systemctl', 'start', SERVICE)
        self.on_machine('dpkg', '-r', 'ranktap')
        self.assertEqual(self.service('ActiveState', 'LoadState'), {'ActiveState': 'inactive', 'LoadState': 'not-found'})

    def test_installing_it_does_not_start_it_and_neither_does_an_upgrade(self):
        self.boot()
        self.on_machine('dpkg', '-i', f'/dist/{self.package.name}')
        self.on_machine('dpkg', '-i', f'/dist/{self.newer.name}')
        self.assertEqual(self.service('ActiveState')['ActiveState'], 'inactive')


if __name__ == '__main__':
    unittest.main()
