"""Jobs of four ranks under the launchers that people use, run for real on this machine."""
import contextlib
import glob
import os
import pathlib
import shutil
import socket
import subprocess
import time
import unittest

import harness

LAUNCHES = 50
PROGRAM = [harness.BUILD / 'workloads/launches', LAUNCHES]

# vmhole: the daemons of Open MPI 4.1 put hwloc's tree into a hole of their own address space, where it can hit their
# stack: without ranktap 32 of 250 jobs on two hosts ended with SIGSEGV in hwloc_shmem_topology_write, with `none` 0 of 200.
OPEN_MPI = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'OMPI_MCA_rtc_hwloc_vmhole': 'none'}


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(missing, f'not installed: {", ".join(missing)}; scripts/setup --launchers')


class LauncherTest(harness.TracedTest):
    """Every launcher's ranks, with the variable they came from."""

    def check(self, launcher, origin, **environment):
        command = [harness.ROOT / 'scripts/with-simulated-gpu', harness.RANKTAP, 'run', '-o', self.scratch / 'run',
                   '--', *launcher, *PROGRAM]
        done = self._run(command, {'RANKTAP_BUILD': str(harness.BUILD), **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.scratch / 'run'
        ranks = self.report(run, 'ranks')
        self.assertEqual([row['rank'] for row in ranks], [0, 1, 2, 3])
        for row in ranks:
            self.assertEqual(row['rank_origin'], origin)
            self.assertEqual(row['kernels'], LAUNCHES)
            self.assertEqual(row['lost'], 0)
        self.assert_verifies(run)

    @needs('mpirun.openmpi')
    def test_open_mpi(self):
        self.check(['mpirun.openmpi', '--oversubscribe', '-np', '4'], 'OMPI_COMM_WORLD_RANK', **OPEN_MPI)

    @needs('mpirun.mpich')
    def test_mpich(self):
        self.check(['mpirun.mpich', '-np', '4'], 'PMI_RANK')

    @needs('mpirun.openmpi')
    def test_each_rank_wrapped_joins_the_one_collector(self):
        """`mpirun ranktap run program`: what to do where the environment does not travel."""
        self.check(['mpirun.openmpi', '--oversubscribe', '-np', '4', harness.RANKTAP, 'run', '--quiet', '--'],
                   'OMPI_COMM_WORLD_RANK', **OPEN_MPI)

    @needs('srun', 'slurmctld', 'slurmd', 'munged')
    def test_slurm(self):
        if os.geteuid() != 0:
            self.skipTest('a Slurm of our own takes root')
        with slurm(self.scratch) as configuration:
            self.check(['srun', '--overcommit', '-n', '4'], 'SLURM_PROCID', SLURM_CONF=str(configuration))

    # Slurm's plugin opens the library by its name without a version.
    @unittest.skipUnless(glob.glob('/usr/lib/*/pmix2/lib/libpmix.so'), 'no libpmix-dev; scripts/setup --launchers')
    @needs('srun', 'slurmctld', 'slurmd', 'munged')
    def test_pmix(self):
        if os.geteuid() != 0:
            self.skipTest('a Slurm of our own takes root')
        with slurm(self.scratch) as configuration:
            self.check(['srun', '--mpi=pmix', '--overcommit', '-n', '4'], 'PMIX_RANK', SLURM_CONF=str(configuration))


# As ssh to a machine that has the same files: runs the command without any of our environment. A TMPDIR for each, in
# which daemons of Open MPI on one machine would otherwise make the same directories at once, and one would give up.
REMOTE_SHELL = f"""#!/bin/sh
temporary="$(dirname "$0")/$1"
mkdir "$temporary"
shift
exec env -i PATH="$PATH" HOME="$HOME" TMPDIR="$temporary" {' '.join(f'{name}={value}' for name, value in OPEN_MPI.items())} sh -c "$*"
"""

# As pdsh, on two machines which are this one.
REMOTE_SHELLS = """#!/bin/sh
while [ "$1" != -w ]; do shift; done
shift 2
for node in 0 1; do
    command=$(printf '%s ' "$@" | sed "s/%n/$node/")
    env -i PATH="$PATH" HOME="$HOME" DS_ACCELERATOR=cpu bash -c "$command" &
done
wait
"""


class ElsewhereTest(harness.TracedTest):
    """Ranks whose machine gets no environment but what the launcher is told to take along."""

    def script(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_simulated(self, launcher, program, **environment):
        run = self.scratch / 'run'
        done = self._run([harness.ROOT / 'scripts/with-simulated-gpu', harness.RANKTAP, 'run', '-o', run, '--',
                          *launcher, *program], {'RANKTAP_BUILD': str(harness.BUILD), **environment})
        return done, run

    def open_mpi(self, *options, **environment):
        shell = self.script('remote-shell', REMOTE_SHELL)
        return self.run_simulated(
            ['mpirun.openmpi', *options, '-np', '2', '--host', 'elsewhere1:1,elsewhere2:1', '--mca', 'plm_rsh_agent',
             shell, '-x', 'LD_LIBRARY_PATH'],
            PROGRAM, **OPEN_MPI, **environment)

    @needs('mpirun.openmpi')
    def test_open_mpi_is_told_to_take_our_variables_along(self):
        done, run = self.open_mpi()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(row['rank'], row['kernels']) for row in self.report(run, 'ranks')],
                         [(0, LAUNCHES), (1, LAUNCHES)])
        self.assert_verifies(run)

    @needs('mpirun.openmpi')
    def test_a_list_for_open_mpi_that_excludes_ours_is_the_users_and_said(self):
        done, _ = self.run_simulated(['mpirun.openmpi', '-np', '2', '--oversubscribe'], PROGRAM,
                                     OMPI_MCA_mca_base_env_list='HOME', **OPEN_MPI)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('mca_base_env_list is in use', done.stderr)

    @needs('srun', 'slurmctld', 'slurmd', 'munged')
    def test_slurms_lists_of_variables_get_ours(self):
        if os.geteuid() != 0:
            self.skipTest('a Slurm of our own takes root')
        with slurm(self.scratch) as configuration:
            for number, (options, environment) in enumerate([
                    (['--export=LD_LIBRARY_PATH,PATH'], {}),
                    (['--export', 'LD_LIBRARY_PATH,PATH'], {}),
                    ([], {'SLURM_EXPORT_ENV': 'LD_LIBRARY_PATH,PATH'})]):
                with self.subTest(options=options, environment=environment):
                    done, run = self.run_simulated(['srun', '--overcommit', '-n', '2', *options], PROGRAM,
                                                   SLURM_CONF=str(configuration), **environment)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual([row['kernels'] for row in self.report(run, 'ranks')], [LAUNCHES] * 2)
                    run.rename(self.scratch / f'run{number}')
            done, _ = self.run_simulated(['srun', '--overcommit', '-n', '2', '--export=NONE'], ['/bin/true'],
                                         SLURM_CONF=str(configuration))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('--export=NONE leaves our variables behind', done.stderr)

    @unittest.skipUnless((harness.CACHE / 'deepspeed-venv/bin/deepspeed').exists(),
                         'no DeepSpeed; scripts/setup --torch --tools installs it')
    def test_deepspeed_reads_our_variables_from_its_file_beside_the_users_own(self):
        binaries = harness.CACHE / 'deepspeed-venv/bin'
        self.script('pdsh', REMOTE_SHELLS)
        (self.scratch / 'hosts').write_text('elsewhere1 slots=1\nelsewhere2 slots=1\n')
        (self.scratch / '.deepspeed_env').write_text('USERS_OWN=kept\n')
        done, run = self.run_traced(
            [binaries / 'deepspeed', '--hostfile', self.scratch / 'hosts', '--no_ssh_check', '--master_addr', '127.0.0.1',
             '--master_port', free_port(), harness.PROGRAMS / 'launched.py', 'print', 'USERS_OWN'], ['--level', 'full'],
            DS_ACCELERATOR='cpu', HOME=str(self.scratch), PATH=f'{self.scratch}:{binaries}:{os.environ["PATH"]}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines().count('USERS_OWN=kept'), 2, done.stdout)
        self.assertEqual([row['rank'] for row in self.report(run, 'ranks')], [0, 1])


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class TorchLauncherTest(harness.TracedTest):
    """Launchers that give the rank to Python, on the CPU."""

    def ranks_of(self, command, count, **environment):
        done, run = self.run_traced(command, ['--level', 'full'], **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        ranks = self.report(run, 'ranks')
        self.assertEqual([row['rank'] for row in ranks], list(range(count)), ranks)
        self.assert_verifies(run)
        return {row['rank_origin'] for row in ranks}

    @harness.needs_torch
    def test_mp_spawn_whose_ranks_no_variable_has(self):
        program = [harness.TORCH_PYTHON, harness.PROGRAMS / 'spawn_ranks.py', self.scratch / 'store']
        self.assertEqual(self.ranks_of(program, 4), {'torch.distributed'})

    @harness.needs_torch
    def test_variables_that_the_program_sets_itself_as_ray_train_does(self):
        """Not Ray itself: a worker of Ray Train gets these from Python, long after it began."""
        done, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'launched.py', 'late'], ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        row, = self.report(run, 'ranks')
        self.assertEqual((row['rank'], row['rank_origin']), (2, 'RANK'))

    @unittest.skipUnless((harness.CACHE / 'deepspeed-venv/bin/deepspeed').exists(),
                         'no DeepSpeed; scripts/setup --torch --tools installs it')
    def test_deepspeed(self):
        binaries = harness.CACHE / 'deepspeed-venv/bin'
        origins = self.ranks_of([binaries / 'deepspeed', '--num_gpus', '2', harness.PROGRAMS / 'launched.py'], 2,
                                DS_ACCELERATOR='cpu', PATH=f'{binaries}:{os.environ["PATH"]}')
        self.assertEqual(origins, {'RANK'})

    @unittest.skipUnless((harness.CACHE / 'launchers-venv/bin/accelerate').exists(),
                         'no Accelerate; scripts/setup --torch --launchers installs it')
    def test_accelerate(self):
        # Its launcher for GPUs, which is torchrun; the program itself stays on the CPU.
        origins = self.ranks_of([harness.CACHE / 'launchers-venv/bin/accelerate', 'launch', '--multi_gpu',
                                 '--num_processes', '2', '--num_machines', '1', '--mixed_precision', 'no',
                                 '--dynamo_backend', 'no', '--main_process_port', '0', harness.PROGRAMS / 'launched.py'], 2)
        self.assertEqual(origins, {'RANK'})


@contextlib.contextmanager
def slurm(scratch):
    """A cluster of one node: this machine. Yields its configuration."""
    folder = pathlib.Path(scratch) / 'slurm'
    for name in ('spool', 'state', 'munge'):
        (folder / name).mkdir(parents=True)
    host = socket.gethostname()
    munge_socket = folder / 'munge/socket'
    configuration = folder / 'slurm.conf'
    configuration.write_text('\n'.join([
        'ClusterName=ranktap', f'SlurmctldHost={host}', 'AuthType=auth/munge', f'AuthInfo=socket={munge_socket}',
        'SlurmUser=root', 'SlurmdUser=root', f'StateSaveLocation={folder}/state', f'SlurmdSpoolDir={folder}/spool',
        f'SlurmctldPidFile={folder}/ctld.pid', f'SlurmdPidFile={folder}/d.pid', f'SlurmctldLogFile={folder}/ctld.log',
        f'SlurmdLogFile={folder}/d.log', 'ProctrackType=proctrack/linuxproc', 'TaskPlugin=task/none',
        'SlurmctldPort=27817', 'SlurmdPort=27818', 'SelectType=select/cons_tres', 'ReturnToService=2',
        f'NodeName={host} CPUs=2 State=UNKNOWN', f'PartitionName=p Nodes={host} Default=YES State=UP', '']))
    key = folder / 'munge/key'
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    os.chmod(folder / 'munge', 0o755)
    os.chmod(folder, 0o755)
    os.chmod(scratch, 0o755)
    environment = {**os.environ, 'SLURM_CONF': str(configuration)}
    servers = []

    def start(*command):
        servers.append(subprocess.Popen([str(part) for part in command], env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def wait_for(what, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise unittest.SkipTest(f'Slurm of our own: no {what} within {seconds} s')
            time.sleep(0.1)

    try:
        start('munged', '--foreground', '--force', f'--socket={munge_socket}', f'--key-file={key}',
              f'--pid-file={folder}/munge/pid', f'--log-file={folder}/munge/log', f'--seed-file={folder}/munge/seed')
        wait_for('munge socket', munge_socket.exists)
        start('slurmctld', '-D')
        start('slurmd', '-D')
        wait_for('idle node', lambda: b'idle' in subprocess.run(['sinfo', '-h', '-o', '%T'], env=environment,
                                                                capture_output=True, check=False).stdout)
        yield configuration
    finally:
        for server in reversed(servers):
            server.terminate()
        for server in servers:
            server.wait(timeout=30)


if __name__ == '__main__':
    unittest.main()
