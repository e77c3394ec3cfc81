// The same agent on Podman's socket: a share that meets its ceiling, logs, exec, an agent that comes back and
// finds its containers, and a GPU that Podman gives by its CDI name. COTENANT_TEST_DOCKER_HOST is a service of
// scripts/podman-engine.sh.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';

import {Cotenant, IMAGE, definition, run, sharingContainer, waitFor} from './harness.mjs';

const ceiling = () => definition('podman',
    sharingContainer('steady', 2048, ['--memory-mib', '64']),
    sharingContainer('greedy', 1024, ['--memory-mib', '64', '--grow-mib', '4096']));

// What the container has printed, which must match; as a probe of waitFor it shows what there is instead.
function printed(cotenant, arn, container, pattern) {
  const {stdout, stderr} = cotenant.cli(['logs', arn, container]);
  return pattern.exec(stdout) ?? assert.fail(`${container} has printed: ${(stdout + stderr).slice(0, 1000)}`);
}

const REFUSED = /refused at MiB \d+ of 4160 \(error 2 CUDA_ERROR_OUT_OF_MEMORY\), goes on with (\d+) MiB/;

test('a share meets its ceiling; logs and exec; the agent comes back; stop', async (t) => {
  const cotenant = await Cotenant.start({until: t, split: true, gpus: '1xL4'});
  assert.match(cotenant.engine.docker(['version', '--format', '{{json .Server}}']).stdout, /Podman Engine/);
  const arn = await cotenant.runOne(await cotenant.register(ceiling()));
  await cotenant.waitForTask(arn, 'RUNNING');
  const ids = await cotenant.runtimeIds(arn);
  const [, kept] = await waitFor('it was refused more than its share', () => printed(cotenant, arn, 'greedy', REFUSED));
  assert.ok(Number(kept) > 512 && Number(kept) <= 1024, kept);
  printed(cotenant, arn, 'steady', / holds 64 MiB /);

  const exec = cotenant.cli(['exec', '-i', arn, 'steady', '--', 'sh', '-c', 'cat; echo $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; echo e >&2; exit 5'],
                            {mayFail: true, input: 'typed\n'});
  assert.deepEqual([exec.status, exec.stdout, exec.stderr], [5, 'typed\n0=2048M\n', 'e\n']);
  const tty = cotenant.shell(`script -qec "${cotenant.binary} exec -it ${arn} steady -- sh -c 'test -t 0 && echo a terminal; exit 6'" /dev/null`);
  assert.match(tty.stdout, /a terminal/);
  assert.equal(tty.status, 6);

  await cotenant.agent.end('SIGKILL');
  await cotenant.restart(cotenant.agent);
  assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');
  assert.deepEqual(await cotenant.runtimeIds(arn), ids);
  for (const id of ids.values()) assert.equal(cotenant.engine.inspect(id).State.Running, true);

  const stopped = await cotenant.stopAndWait(arn);
  assert.equal(stopped.stopCode, 'UserInitiated');
  for (const gpu of (await cotenant.gpus()).values()) assert.equal(gpu.sharingMode, 'IDLE');
  printed(cotenant, arn, 'steady', / holds 64 MiB /);  // logs stay with the stopped container
});

// Podman reads /run/cdi; scripts/podman-engine.sh gives its service one of its own. There the agent lives as well,
// so that both mean the same folder.
const service = {
  folder: path.dirname((process.env.COTENANT_TEST_DOCKER_HOST ?? '').replace(/^unix:\/\//, '')),
  get pid() { return fs.readFileSync(path.join(this.folder, 'podman.pid'), 'utf8').trim(); },
};

test('Podman gives the GPU by its CDI name, to cotenant and by hand', async (t) => {
  // Its simulated driver is a machine's; the agent in question is told of it as of a real one.
  const machine = await Cotenant.start({gpus: '1xL4'});
  const driver = path.join(machine.runDir, 'gpusim');
  const [spec] = fs.readdirSync(path.join(driver, 'cdi'));
  fs.copyFileSync(path.join(driver, 'cdi', spec), path.join(service.folder, 'cdi', spec));
  t.after(() => fs.rmSync(path.join(service.folder, 'cdi', spec), {force: true}));
  const programs = path.join(path.dirname(machine.binary), 'gpusim');
  // Daemons get no environment of the agent's; a real one's driver needs none.
  const control = path.join(machine.folder, 'nvidia-cuda-mps-control');
  fs.writeFileSync(control, `#!/bin/sh\nGPUSIM_DIR=${driver} exec ${path.join(programs, 'nvidia-cuda-mps-control')} "$@"\n`, {mode: 0o755});
  const cotenant = await Cotenant.start({
    until: t, gpus: null, mountsOf: service.pid, env: {GPUSIM_DIR: driver},
    agentArgs: ['--nvml-library', path.join(programs, 'libnvidia-ml.so.1'), '--mps-control', control, '--cdi-dir', '/run/cdi'],
  });
  const arn = await cotenant.runOne(await cotenant.register(ceiling()));
  await cotenant.waitForTask(arn, 'RUNNING');
  await waitFor('it was refused more than its share', () => printed(cotenant, arn, 'greedy', REFUSED));
  const id = (await cotenant.runtimeIds(arn)).get('greedy');
  const {Binds, Memory} = cotenant.engine.inspect(id).HostConfig;
  assert.ok(!Binds.some((bind) => bind.includes('libcuda')), `the driver comes by CDI, not by mounts: ${Binds}`);
  assert.equal(Memory, 64 * 1024 * 1024);
  await cotenant.stopAndWait(arn);

  const [gpu] = (await machine.gpus()).keys();
  const byHand = run('nsenter', [`--mount=/proc/${service.pid}/ns/mnt`, 'podman', 'run', '--rm',
                                 '--device', `nvidia.com/gpu=${gpu}`, IMAGE, '--memory-mib', '96', '--seconds', '1'],
                     {env: {CONTAINERS_CONF: path.join(service.folder, 'containers.conf'),
                            CONTAINERS_STORAGE_CONF: path.join(service.folder, 'storage.conf')}});
  assert.match(byHand.stdout, new RegExp(`uses ${gpu} `));
  assert.match(byHand.stdout, / holds 96 MiB /);
});
