"""NVIDIA's own libcupti, 11.8 to 13.5, around a CUDA program: without a driver, and with one that it does not like."""
import os
import pathlib
import re
import unittest

import harness

CUDA = pathlib.Path(os.environ.get('RANKTAP_CUDA_HOME', '/usr/local/cuda'))
VERSIONS = {version: harness.CACHE / f'cupti-{version}/lib'
            for version in ('11.8', '12.0', '12.4', '12.8', '12.9', '13.2', '13.4', '13.5')} | {'13.0': CUDA / 'lib64'}
DRIVERS = {'no driver': '', "the stand-in's driver": str(harness.BUILD / 'fakes')}
PROGRAM = [harness.BUILD / 'workloads/launches', '20']


def ending(done):
    """Without the rate that it reached."""
    return done.returncode, done.stdout, re.sub(r'\d+ (launches per second|ns each)', r'\1', done.stderr)


class RealCuptiTest(harness.TracedTest):
    def _ends_as_bare(self, version, library, driver, path):
        chosen = {'LD_LIBRARY_PATH': path, 'RANKTAP_CUPTI': str(library)}
        run = self.scratch / f'run-{version}-{bool(path)}'
        traced = self._run([harness.RANKTAP, 'run', '--quiet', '-o', run, '--', *PROGRAM], chosen)
        self.assertEqual(ending(traced), ending(self.run_bare(PROGRAM, **chosen)), f'CUPTI {version}, {driver}')

    def test_a_cuda_program_ends_as_bare_with_each_version(self):
        libraries = {version: next(iter(sorted(folder.glob('libcupti.so.1*'))), None) for version, folder in VERSIONS.items()}
        absent = sorted(version for version, library in libraries.items() if library is None)
        here = {version: library for version, library in libraries.items() if library is not None}
        for version, library in here.items():
            for driver, path in DRIVERS.items():
                with self.subTest(version=version, driver=driver):
                    self._ends_as_bare(version, library, driver, path)
        print(f'CUPTI {", ".join(sorted(here))} ran; not here: {", ".join(absent) or "none"}', flush=True)
        if absent:
            self.skipTest(f'no CUPTI {", ".join(absent)}: run scripts/setup')


if __name__ == '__main__':
    unittest.main()
