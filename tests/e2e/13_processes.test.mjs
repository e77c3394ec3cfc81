// A machine without a container engine: containers are processes, and meet the limits of GPU memory all
// the same. No Docker engine takes part.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';

import {BINARY, Cotenant, WORKER, definition, processesNaming, run, waitFor} from './harness.mjs';

const NO_ENGINE = {host: 'unix:///nonexistent/docker.sock'};
const start = (t, options = {}) =>
    Cotenant.start({until: t, engine: NO_ENGINE, agentArgs: ['--runtime', 'process'], ...options});

// As the container runtime interface of Kubernetes writes it: time, stream, F or P, text.
const logOf = (cotenant, runtimeId) =>
    fs.readFileSync(path.join(cotenant.agentDataDir, 'processes', runtimeId, 'log'), 'utf8');
const recordOf = (cotenant, runtimeId, name) => {
  const text = fs.readFileSync(path.join(cotenant.agentDataDir, 'processes', runtimeId, name), 'utf8');
  return Object.fromEntries(text.trim().split('\n').map((line) => line.split(/ (.*)/s).slice(0, 2)));
};

async function waitForLog(cotenant, runtimeId, pattern) {
  return waitFor(`${runtimeId} prints ${pattern}`, () => {
    const log = logOf(cotenant, runtimeId);
    const found = log.match(pattern);
    if (!found) throw new Error(`it has printed:\n${log.slice(-1000)}`);
    return found;
  });
}

const shell = (name, script, more = {}) =>
    ({name, image: 'host', memory: 32, stopTimeout: 5, entryPoint: ['/bin/sh', '-c'], command: [script], ...more});
const FOREVER = 'trap "exit 0" TERM; while :; do sleep 0.1; done';

const sharing = (name, mib, args) => ({
  name, image: 'host', memory: 64, stopTimeout: 5, entryPoint: [WORKER], command: args,
  resourceRequirements: [{type: 'GPU', sharingStrategy: {nvidiaMps: {memory: mib}}}],
});

const runs = (pid) => fs.existsSync(`/proc/${pid}`);
const only = (ids) => [...ids.values()][0];

test('sharing processes meet their limits, and stop as containers do', async (t) => {
  const cotenant = await start(t);
  const instance = await cotenant.instance();
  const isolation = instance.attributes.find(({name}) => name === 'cotenant.isolation');
  assert.equal(isolation?.value, 'none');
  assert.match(instance.versionInfo.dockerVersion, /^process runtime Linux /);

  // 5000 MiB are asked for below a limit of 4096, on a GPU that has 22563.
  const grow = await cotenant.runOne(await cotenant.register(
      definition('grow', sharing('main', 4096, ['--memory-mib', '1024', '--grow-mib', '4000']))));
  const calm = await cotenant.runOne(await cotenant.register(
      definition('calm', sharing('main', 8192, ['--memory-mib', '6000']))));
  const tasks = [];
  for (const arn of [grow, calm]) tasks.push(await cotenant.waitForTask(arn, 'RUNNING'));
  const gpuIds = tasks.map((task) => task.containers[0].gpuIds[0]);
  assert.equal(gpuIds[0], gpuIds[1], 'both on one GPU');
  const gpu = (await cotenant.gpus()).get(gpuIds[0]);
  assert.equal(gpu.sharingMode, 'NVIDIA_MPS');
  assert.equal(gpu.remainingMemoryInMiB, gpu.totalMemoryInMiB - 4096 - 8192);

  const growing = only(await cotenant.runtimeIds(grow));
  const quiet = only(await cotenant.runtimeIds(calm));
  const [line, device, refusedAt] =
      await waitForLog(cotenant, growing, /uses (GPU-\S+) \(.*\n(?:.*\n)*?.* refused at MiB (\d+) of /);
  assert.equal(device, gpuIds[0], line);
  assert.ok(Number(refusedAt) > 1024 && Number(refusedAt) <= 4000, refusedAt);
  await waitForLog(cotenant, quiet, / holds 6000 MiB /);

  const ps = cotenant.cli(['ps']).stdout;
  assert.match(ps, /plain processes of their machine: no isolation/);

  for (const arn of [grow, calm]) {
    const task = await cotenant.stopAndWait(arn);
    assert.equal(task.containers[0].exitCode, 0, 'the worker ends by itself at SIGTERM');
  }
  await waitFor('the GPU is idle', async () => (await cotenant.gpus()).get(gpuIds[0]).sharingMode === 'IDLE');
  const pid = recordOf(cotenant, growing, 'state').pid;
  assert.ok(!runs(pid));
});

test('a process without a GPU sees none, and has its ports and its environment', async (t) => {
  const cotenant = await start(t);
  const arn = await cotenant.runOne(await cotenant.register({
    family: 'plain',
    containerDefinitions: [shell('main', `env; ${FOREVER}`, {
      environment: [{name: 'GREETING', value: 'hello you'}],
      portMappings: [{containerPort: 18099, hostPort: 18099}],
    })],
  }));
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  assert.deepEqual(task.containers[0].networkBindings,
                   [{bindIP: '0.0.0.0', containerPort: 18099, hostPort: 18099, protocol: 'tcp'}]);
  const id = only(await cotenant.runtimeIds(arn));
  await waitForLog(cotenant, id, /GREETING=hello you/);
  await waitForLog(cotenant, id, /CUDA_VISIBLE_DEVICES=-1/);
  assert.match(cotenant.cli(['logs', arn]).stdout, /^GREETING=hello you$/m);
  const beside = cotenant.cli(['exec', arn, 'main', '--', 'sh', '-c', 'echo "$GREETING"; exit 4'], {mayFail: true});
  assert.equal(beside.stdout, 'hello you\n');
  assert.equal(beside.status, 4);
  assert.doesNotMatch(logOf(cotenant, id), /GPUSIM_DIR|AWS_|CUDA_MPS/);
  assert.equal((await cotenant.stopAndWait(arn)).containers[0].exitCode, 0);
});

test('what a process cannot have stops the task with the member that asked for it', async (t) => {
  const cotenant = await start(t);
  const cases = [
    [/portMappings: .* hostPort the value of containerPort/,
     {containerDefinitions: [shell('main', FOREVER, {portMappings: [{containerPort: 80, hostPort: 18098}]})]}],
    [/ResourceInitializationError: .*networkMode: awsvpc needs a container engine/,
     {networkMode: 'awsvpc', containerDefinitions: [shell('main', FOREVER)]}],
    [/mountPoints: .* volume 'v'/,
     {volumes: [{name: 'v', host: {}}],
      containerDefinitions: [shell('main', FOREVER, {mountPoints: [{sourceVolume: 'v', containerPath: '/v'}]})]}],
    [/entryPoint, command: /,
     {containerDefinitions: [{name: 'main', image: 'web', memory: 32}]}],
    [/CannotStartContainerError: program '\/no\/such' *: No such file/,
     {containerDefinitions: [{name: 'main', image: 'web', memory: 32, command: ['/no/such']}]}],
  ];
  for (const [reason, input] of cases) {
    const arn = await cotenant.runOne(await cotenant.register({family: 'refused', ...input}));
    const task = await cotenant.waitForTask(arn, 'STOPPED');
    assert.match(task.containers[0].reason ?? '', reason);
  }
});

test('an agent that is killed leaves its processes alone, and its successor finds them', async (t) => {
  const cotenant = await start(t, {split: true});
  const steady = await cotenant.runOne(await cotenant.register(
      definition('steady', sharing('main', 2048, ['--memory-mib', '512']))));
  const go = path.join(cotenant.folder, 'go');
  const ending = await cotenant.runOne(await cotenant.register(
      definition('ending', shell('main', `while ! test -e ${go}; do sleep 0.05; done; exit 9`))));
  for (const arn of [steady, ending]) await cotenant.waitForTask(arn, 'RUNNING');
  const steadyId = only(await cotenant.runtimeIds(steady));
  const endingId = only(await cotenant.runtimeIds(ending));
  const {pid} = recordOf(cotenant, steadyId, 'state');

  await cotenant.agent.end('SIGKILL');
  assert.ok(runs(pid));
  fs.writeFileSync(go, '');
  await waitFor('its exit code is written without an agent',
                () => recordOf(cotenant, endingId, 'exit').code === '9');
  await cotenant.restart(cotenant.agent);

  const ended = await cotenant.waitForTask(ending, 'STOPPED');
  assert.equal(ended.containers[0].exitCode, 9);
  assert.equal((await cotenant.task(steady)).lastStatus, 'RUNNING');
  assert.equal(only(await cotenant.runtimeIds(steady)), steadyId);
  assert.equal(recordOf(cotenant, steadyId, 'state').pid, pid);
  assert.ok(runs(pid));

  // And an ordinary restart.
  assert.deepEqual(await cotenant.agent.end('SIGTERM'), {code: 0, signal: null});
  assert.ok(runs(pid));
  await cotenant.restart(cotenant.agent);
  assert.equal((await cotenant.stopAndWait(steady)).containers[0].exitCode, 0);
  assert.ok(!runs(pid));
});

const GPUSIM = path.join(path.dirname(BINARY), 'gpusim');
// Does not touch its GPU, and so does not notice what becomes of it.
const calmSharing = (name, mib) => ({
  ...shell(name, FOREVER),
  resourceRequirements: [{type: 'GPU', sharingStrategy: {nvidiaMps: {memory: mib}}}],
});
const gpuRow = async (cotenant, gpuId) => {
  const {gpus} = JSON.parse(cotenant.cli(['gpus', '--output', 'json']).stdout);
  return gpus.find((gpu) => gpu.gpuId === gpuId);
};

test('a GPU that is lost in use takes nothing until it is back; its instance and its tasks stay', async (t) => {
  const cotenant = await start(t, {split: true});
  const gpusim = (...args) =>
      run(path.join(GPUSIM, 'gpusim'), args, {env: {GPUSIM_DIR: path.join(cotenant.runDir, 'gpusim')}});
  const arn = await cotenant.runOne(await cotenant.register(definition('held', calmSharing('main', 20000))));
  const [gpuId] = (await cotenant.waitForTask(arn, 'RUNNING')).containers[0].gpuIds;
  const {pid} = recordOf(cotenant, only(await cotenant.runtimeIds(arn)), 'state');
  const {index} = await gpuRow(cotenant, gpuId);

  gpusim('lose', '--gpu', String(index));
  await waitFor('it is out of service', async () => (await gpuRow(cotenant, gpuId)).unavailable);
  assert.match(cotenant.cli(['gpus']).stdout, /NVIDIA_MPS \(out of service\)/);
  assert.match(cotenant.agent.tail(), /GPU \S+ is out of service: the driver does not show it any more/);
  // The other one takes work; this one does not.
  const small = await cotenant.register(definition('small', calmSharing('main', 1000)));
  const other = await cotenant.waitForTask(await cotenant.runOne(small), 'RUNNING');
  assert.notEqual(other.containers[0].gpuIds[0], gpuId);

  // An agent that starts while it is lost joins all the same.
  await cotenant.agent.end('SIGKILL');
  await cotenant.restart(cotenant.agent);
  assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');
  assert.ok(runs(pid));
  assert.ok((await gpuRow(cotenant, gpuId)).unavailable);

  gpusim('restore', '--gpu', String(index));
  await waitFor('it is in service again', async () => !(await gpuRow(cotenant, gpuId)).unavailable);
  assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');
  assert.ok(runs(pid));
  await cotenant.stopAll();
});

test('a GPU driver that dies is noticed, and so is its return; what runs is left alone', async (t) => {
  const cotenant = await start(t);
  const arn = await cotenant.runOne(await cotenant.register(definition('held', calmSharing('main', 2000))));
  const [gpuId] = (await cotenant.waitForTask(arn, 'RUNNING')).containers[0].gpuIds;
  const {pid} = recordOf(cotenant, only(await cotenant.runtimeIds(arn)), 'state');
  const driverPid = Number(fs.readFileSync(path.join(cotenant.runDir, 'gpusimd.pid'), 'utf8').trim().split(/\s/)[0]);
  const [program, ...args] =
      fs.readFileSync(`/proc/${driverPid}/cmdline`, 'utf8').split('\0').filter((word) => word !== '');

  process.kill(driverPid, 'SIGKILL');
  await waitFor('all GPUs are out of service', async () => {
    const {gpus} = JSON.parse(cotenant.cli(['gpus', '--output', 'json']).stdout);
    return gpus.length === 2 && gpus.every((gpu) => /the driver does not answer/.test(gpu.unavailable ?? ''));
  });
  const refused = await cotenant.call('RunTask', {taskDefinition: 'held'});
  assert.equal(refused.failures[0].reason, 'RESOURCE:GPU');
  assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');
  assert.ok(runs(pid));

  const driver = spawn(program, args, {stdio: 'ignore', detached: true});
  t.after(() => driver.kill('SIGKILL'));
  await waitFor('they are back', async () => {
    const {gpus} = JSON.parse(cotenant.cli(['gpus', '--output', 'json']).stdout);
    return gpus.every((gpu) => gpu.unavailable === undefined);
  });
  assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');
  assert.ok(runs(pid));
  assert.match(cotenant.agent.tail(), /is back in service/);
  await cotenant.stopAll();
});

test('down leaves no process and no folder', async (t) => {
  const cotenant = await start(t);
  const arn = await cotenant.runOne(await cotenant.register(definition('left', shell('main', FOREVER))));
  await cotenant.waitForTask(arn, 'RUNNING');
  const {pid} = recordOf(cotenant, only(await cotenant.runtimeIds(arn)), 'state');

  // Another runtime would not find what runs.
  await cotenant.server.end('SIGTERM');
  const other = run(BINARY, ['up', '--data-dir', cotenant.dataDir, '--run-dir', cotenant.runDir], {mayFail: true});
  assert.equal(other.status, 1);
  assert.match(other.stderr, /--runtime docker: .* was started with process/);

  cotenant.down();
  assert.ok(!runs(pid));
  assert.deepEqual(processesNaming(cotenant.dataDir), []);
  assert.ok(!fs.existsSync(cotenant.dataDir));
  assert.ok(!fs.existsSync(cotenant.runDir));
});
