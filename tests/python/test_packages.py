"""What scripts/package makes: the same bytes twice, and installs, runs, is upgraded and removed."""
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import harness
import old_root
from nvtx_program import build_program, why_no_program

sys.path.insert(0, str(harness.ROOT / 'scripts/packaging'))
import wheel_file  # noqa: E402

PACKAGE = harness.ROOT / 'scripts/package'
AUDITWHEEL = harness.CACHE / 'auditwheel-venv/bin/auditwheel'
MOST_WHEEL_BYTES = 15_000_000
MINIMUM_MINOR = 8  # of Python 3, as the wheel's metadata says


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f'{command}: {done.stdout}{done.stderr}'
    return done.stdout


def pythons_here():
    """{version: program}: this one, and each on the path or of pyenv that is new enough and makes environments."""
    found = [sys.executable, *(shutil.which(f'python3.{minor}') for minor in range(MINIMUM_MINOR, 20))]
    versions = pathlib.Path(os.environ.get('PYENV_ROOT', pathlib.Path.home() / '.pyenv')) / 'versions'
    found += sorted(str(path) for path in versions.glob('3.*/bin/python'))
    told = {}
    for python in filter(None, found):
        done = subprocess.run([python, '-c', 'import sys, ensurepip; print("%d.%d" % sys.version_info[:2])'],
                              capture_output=True, text=True)
        version = done.stdout.strip()
        if done.returncode == 0 and int(version.split('.')[1]) >= MINIMUM_MINOR:
            told.setdefault(version, python)
    return told


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*') if not path.is_dir())


def with_version(package, version, scratch):
    """The same .deb under another version."""
    tree, target = scratch / 'tree', scratch / f'ranktap_{version}_amd64.deb'
    run('dpkg-deb', '-R', package, tree)
    control = tree / 'DEBIAN/control'
    control.write_text(re.sub('^Version: .*$', f'Version: {version}', control.read_text(), flags=re.M))
    run('dpkg-deb', '--root-owner-group', '-b', tree, target)
    shutil.rmtree(tree)
    return target


class PackagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if not (harness.BUILD / 'glibc_floor/libc.so').exists():
            raise unittest.SkipTest(f'{harness.BUILD} is built without RANKTAP_OLD_GLIBC')
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name)
        cls.scratch.chmod(0o755)
        cls.dist = cls.scratch / 'dist'
        run(PACKAGE, 'all', '--build', harness.BUILD, '--out', cls.dist)
        cls.wheel = next(cls.dist.glob('*.whl'))
        cls.deb = next(cls.dist.glob('*.deb'))
        cls.tar = next(path for path in cls.dist.glob('*.tar.gz') if 'debug' not in path.name)
        cls.version = run(harness.RANKTAP, '--version').split()[1]

    def run_in(self, suite, script):
        done = old_root.run_in(suite, script, {'/dist': self.dist, '/try': self.programs()})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def programs(self):
        if why_no_program():
            self.skipTest(why_no_program())
        folder = self.scratch / 'programs'
        if not folder.exists():
            folder.mkdir()
            build_program(folder / 'program')
        return folder

    def test_the_same_build_is_packed_into_the_same_bytes(self):
        again = self.scratch / 'again'
        # Another umask and another place for what is temporary.
        run('sh', '-c', 'umask 077 && mkdir "$1/tmp" && TMPDIR="$1/tmp" "$2" all --build "$3" --out "$4"', 'sh',
            self.scratch, PACKAGE, harness.BUILD, again)
        names = sorted(path.name for path in self.dist.iterdir())
        self.assertEqual(names, sorted(path.name for path in again.iterdir()))
        for name in names:
            with self.subTest(file=name):
                self.assertTrue((self.dist / name).read_bytes() == (again / name).read_bytes(), name)

    def test_what_is_built_names_no_folder_of_the_machine_that_built_it(self):
        """So that the same commit is the same bytes in any folder: debug information, too."""
        for part in 'bin/ranktap', 'lib/libranktap.so', 'lib/libranktap_agent.so':
            content = (harness.BUILD / part).read_bytes()
            for folder in harness.ROOT, harness.BUILD:
                with self.subTest(file=part, folder=folder):
                    self.assertNotIn(bytes(folder), content)

    def test_all_forms_have_the_version_of_the_tool(self):
        written = re.search(r'project\(ranktap VERSION (\S+)', (harness.ROOT / 'CMakeLists.txt').read_text())[1]
        self.assertEqual(self.version, written)
        self.assertEqual(run('dpkg-deb', '-f', self.deb, 'Version').strip(), written)
        with zipfile.ZipFile(self.wheel) as wheel:
            self.assertIn(f'\nVersion: {written}\n', wheel.read(f'ranktap-{written}.dist-info/METADATA').decode())
        self.assertIn(f'## {written}', (harness.ROOT / 'CHANGELOG.md').read_text())

    def test_the_install_script_and_cmake_install_the_same_files(self):
        run(harness.ROOT / 'scripts/install', self.scratch / 'by-script', harness.BUILD)
        run('cmake', '--install', harness.BUILD, '--prefix', self.scratch / 'by-cmake')
        self.assertEqual(files_below(next((self.scratch / 'by-script/versions').iterdir())),
                         files_below(self.scratch / 'by-cmake'))

    def test_every_library_that_is_linked_in_is_in_the_sbom_with_its_licence(self):
        run('tar', '-xzf', self.tar, '-C', self.scratch)
        tree = self.scratch / self.tar.name.removesuffix('.tar.gz')
        packages = {package['name']: package for package in
                    json.loads((tree / 'share/ranktap.spdx.json').read_text())['packages']}
        for name in 'protobuf', 'zstd', 'SQLite', 'elfutils libdw', 'libstdc++', 'libunwind':
            with self.subTest(part=name):
                self.assertTrue(packages[name]['licenseConcluded'])
                self.assertTrue((tree / f'share/licenses/{name.replace(" ", "-")}.txt').read_text())

    def test_the_wheel_has_the_documentation_the_manual_pages_and_no_dead_link(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = set(wheel.namelist())
            told = wheel.read(f'ranktap-{self.version}.dist-info/METADATA').decode()
        pages = [path.relative_to(harness.ROOT) for path in (harness.ROOT / 'docs').rglob('*.md')]
        self.assertLessEqual({f'ranktap/{page}' for page in pages}, names)
        verbs = re.findall(r'^    {"([a-z-]+)",', (harness.ROOT / 'collector/cli/registry.cc').read_text(), re.M)
        for page in ('ranktap', *(f'ranktap-{verb}' for verb in verbs)):
            self.assertIn(f'ranktap-{self.version}.data/data/share/man/man1/{page}.1.gz', names)
        self.assertNotRegex(told, r'\]\((?!https?:)')
        links = wheel_file.with_absolute_links('[a](docs/a.md#b) ![c](docs/c.png) [d](https://d)', 'https://p/r')
        self.assertEqual(links, '[a](https://p/r/blob/HEAD/docs/a.md#b) ![c](https://p/r/raw/HEAD/docs/c.png) [d](https://d)')

    def test_no_package_is_made_without_manual_pages(self):
        build = self.scratch / 'build'
        (build / 'man').mkdir(parents=True)
        (build / 'bin').mkdir()
        (build / 'bin/ranktap').symlink_to(harness.RANKTAP)
        for name in 'CMakeCache.txt', 'compile_commands.json', 'build.ninja':
            if (harness.BUILD / name).exists():
                (build / name).symlink_to(harness.BUILD / name)
        done = subprocess.run([harness.ROOT / 'scripts/packaging/complete', 'TGZ', self.scratch / 'tree', self.scratch / 'tree', build],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('no manual pages', done.stderr)

    def test_auditwheel_finds_the_wheel_fit_for_its_tag(self):
        if not AUDITWHEEL.exists():
            self.skipTest(f'no {AUDITWHEEL}; scripts/setup --packages installs it')
        answer = ' '.join(run(AUDITWHEEL, 'show', self.wheel).split())
        # Older is better: it says the least that the files need.
        found = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_x86_64"', answer)
        self.assertTrue(found and int(found[1]) <= 28, answer)
        self.assertLessEqual(self.wheel.stat().st_size, MOST_WHEEL_BYTES)

    def test_the_image_recipe_takes_the_wheel_and_its_steps_are_sound(self):
        """Without an engine: its steps are shell, its command is one that the tool takes. test_container_engine builds it."""
        text = (harness.ROOT / 'scripts/container/Dockerfile').read_text().replace('\\\n', ' ')
        steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith('#')]
        self.assertLessEqual({step for step, _ in steps}, {'FROM', 'COPY', 'RUN', 'VOLUME', 'ENTRYPOINT', 'CMD'})
        words = dict(steps)
        self.assertTrue(fnmatch.fnmatch(self.wheel.name, words['COPY'].split()[0]), words['COPY'])
        run('sh', '-n', '-c', words['RUN'])
        command = json.loads(words['ENTRYPOINT']) + json.loads(words['CMD'])
        self.assertEqual(command[0], 'ranktap')
        self.assertIn('RANKTAP_SOCKET=', run(harness.RANKTAP, *command[1:], '--print-env'))

    TRY_WHEEL = '''
        {python} -m venv /tmp/venv >&2
        /tmp/venv/bin/pip install --no-index --disable-pip-version-check {wheel} >&2
        /tmp/venv/bin/ranktap --version; /tmp/venv/bin/python -m ranktap --version
        status=0; /tmp/venv/bin/ranktap run -o /tmp/run -- /try/program >&2 || status=$?
        [ $status = 7 ]
        /tmp/venv/bin/ranktap verify /tmp/run >&2; ls /tmp/run/*.trace | wc -l'''

    def assert_wheel_runs(self, suite):
        script = self.TRY_WHEEL.format(python='python3', wheel=f'/dist/{self.wheel.name}')
        self.assertEqual(self.run_in(suite, script).split('\n')[:3],
                         [f'ranktap {self.version}', f'ranktap {self.version}', '1'])

    def test_the_wheel_installs_and_traces_with_python_3_9_on_debian_11(self):
        self.assert_wheel_runs('bullseye')

    def test_the_wheel_installs_and_traces_with_python_3_13_on_debian_13(self):
        self.assert_wheel_runs('trixie')

    def test_the_wheel_installs_and_traces_with_every_python_here(self):
        pythons = pythons_here()
        print(f'tried with {", ".join(pythons)}')
        for version, python in pythons.items():
            here = self.scratch / version
            here.mkdir()
            script = self.TRY_WHEEL.replace('/tmp/', f'{here}/').replace('/try/', f'{self.programs()}/')
            script = script.format(python=python, wheel=self.wheel)
            with self.subTest(python=version):
                answer = run('sh', '-ec', script, cwd=here)
                self.assertEqual(answer.split('\n')[:3], [f'ranktap {self.version}', f'ranktap {self.version}', '1'])

    # A collector goes on while its package is replaced; programs find the new agent and the old collector.
    TRY_DEB = '''
        dpkg -i /dist/{deb} >&2
        ranktap --version
        test -f /usr/lib/systemd/system/ranktap-collector.service
        mkdir -m 700 /tmp/own
        ranktap collect --socket /tmp/own/socket -o /tmp/runs >&2 & collector=$!
        for _ in $(seq 200); do [ -S /tmp/own/socket ] && break; sleep 0.05; done
        dpkg -i /dist/newer/{newer} >&2
        kill -0 $collector
        status=0
        RANKTAP_SOCKET=/tmp/own/socket ranktap run -- /try/program >&2 || status=$?
        [ $status = 7 ]
        ranktap status --socket /tmp/own/socket >&2
        kill -TERM $collector; wait $collector
        for run in /tmp/runs/*/*; do ranktap verify "$run" >&2; done
        find /tmp/runs -name '*.trace' | wc -l
        dpkg -r ranktap >&2
        ls -d /opt/ranktap /usr/bin/ranktap /usr/lib/systemd/system/ranktap-collector.service 2>/dev/null | wc -l'''

    def assert_deb_lives(self, suite):
        newer = self.dist / 'newer'
        newer.mkdir(exist_ok=True)
        self.addCleanup(shutil.rmtree, newer)
        package = with_version(self.deb, '99.0', newer)
        answer = self.run_in(suite, self.TRY_DEB.format(deb=self.deb.name, newer=package.name))
        self.assertEqual(answer.split('\n')[:3], [f'ranktap {self.version}', '1', '0'])

    def test_the_deb_is_installed_upgraded_below_a_collector_and_removed_on_debian_11(self):
        self.assert_deb_lives('bullseye')

    def test_the_deb_is_installed_upgraded_below_a_collector_and_removed_on_debian_13(self):
        self.assert_deb_lives('trixie')


if __name__ == '__main__':
    unittest.main()
