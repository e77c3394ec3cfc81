// The story of the demo: three models on one GPU, a fourth on the next, a whole GPU refused, a worker
// that meets its ceiling while its neighbours notice nothing.
import assert from 'node:assert/strict';
import {before, test} from 'node:test';

import {Cotenant, example, waitFor} from './harness.mjs';

const L4_MIB = 22563;  // what an NVIDIA L4 offers: 23034 MiB less 471 reserved
const SHARES = new Map([['chat', 8192], ['embedding', 8192], ['rerank', 4096]]);
const SHARED_MIB = 20480;

let cotenant;
let threeModels;  // ARN
let sharedGpuId;  // where they run

const holds = (mib) => new RegExp(` holds ${mib} MiB `);

// Waits until the container prints, from now on, one more line that matches.
async function waitForOneMore(runtimeId, pattern) {
  const count = () => cotenant.engine.logs(runtimeId).filter((line) => pattern.test(line)).length;
  const seen = count();
  await waitFor(`container ${runtimeId} prints once more ${pattern}`, () => count() > seen);
}

// What a container of an example was told to hold.
const heldMib = (name, container) => {
  const {command} = example(name).containerDefinitions.find((entry) => entry.name === container);
  return Number(command[command.indexOf('--memory-mib') + 1]);
};

before(async () => {
  cotenant = await Cotenant.start();
});

test('the instance offers two idle GPUs that can be shared', async () => {
  const instance = await cotenant.instance();
  assert.equal(instance.status, 'ACTIVE');
  assert.ok(instance.attributes.some((attribute) => attribute.name === 'ecs.capability.gpu-sharing-mps'));
  assert.equal(instance.gpuDevices.length, 2);
  for (const gpu of instance.gpuDevices) {
    assert.match(gpu.gpuId, /^GPU-/);
    assert.equal(gpu.sharingMode, 'IDLE');
    assert.equal(gpu.totalMemoryInMiB, L4_MIB);
    assert.equal(gpu.remainingMemoryInMiB, L4_MIB);
    assert.equal(gpu.containerCount, 0);
  }
});

test('three models run on one GPU', async () => {
  const definition = await cotenant.register(example('three-models'));
  assert.match(definition, /^arn:aws:ecs:us-east-1:000000000000:task-definition\/three-models:1$/);
  threeModels = await cotenant.runOne(definition);
  const task = await cotenant.waitForTask(threeModels, 'RUNNING');

  assert.equal(task.containers.length, SHARES.size);
  const gpuIds = new Set(task.containers.flatMap((container) => container.gpuIds));
  assert.equal(gpuIds.size, 1, 'all sharing containers of a task are on one GPU');
  [sharedGpuId] = gpuIds;
  for (const container of task.containers) {
    assert.equal(container.lastStatus, 'RUNNING');
    assert.equal(container.gpuIds.length, 1);
    const want = {memory: SHARES.get(container.name)};
    if (container.name === 'chat') want.maxComputePercent = 50;
    assert.deepEqual(container.gpuSharingStrategy, {nvidiaMps: want});
  }

  const gpus = await cotenant.gpus();
  assert.deepEqual(gpus.get(sharedGpuId), {
    gpuId: sharedGpuId,
    sharingMode: 'NVIDIA_MPS',
    totalMemoryInMiB: L4_MIB,
    remainingMemoryInMiB: L4_MIB - SHARED_MIB,
    containerCount: 3,
  });
  for (const [gpuId, gpu] of gpus) {
    if (gpuId !== sharedGpuId) assert.equal(gpu.sharingMode, 'IDLE');
  }
});

test('each model holds what it was told to, on that GPU', async () => {
  for (const [name, runtimeId] of await cotenant.runtimeIds(threeModels)) {
    await cotenant.waitForLog(runtimeId, new RegExp(`uses ${sharedGpuId} .* device 0 of 1$`));
    await cotenant.waitForLog(runtimeId, holds(heldMib('three-models', name)));
  }
});

test('each container gets its limits', async () => {
  const ids = await cotenant.runtimeIds(threeModels);
  for (const [name, memoryMib] of SHARES) {
    const environment = cotenant.engine.inspect(ids.get(name)).Config.Env;
    assert.ok(environment.includes(`CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=${memoryMib}M`), `${name}: ${environment}`);
    const percent = environment.filter((entry) => entry.startsWith('CUDA_MPS_ACTIVE_THREAD_PERCENTAGE='));
    assert.deepEqual(percent, name === 'chat' ? ['CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50'] : []);
  }
});

test('a fourth that does not fit beside them goes to the other GPU', async () => {
  const arn = await cotenant.runOne(await cotenant.register(example('fourth')));
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  const [gpuId] = task.containers[0].gpuIds;
  assert.notEqual(gpuId, sharedGpuId);
  const gpu = (await cotenant.gpus()).get(gpuId);
  assert.equal(gpu.sharingMode, 'NVIDIA_MPS');
  assert.equal(gpu.remainingMemoryInMiB, L4_MIB - 6144);
  assert.equal(gpu.containerCount, 1);
});

test('a whole GPU is refused while none is idle, with the reason and the nearest GPU', async () => {
  const reply = await cotenant.call('RunTask', {taskDefinition: await cotenant.register(example('whole-gpu'))});
  assert.deepEqual(reply.tasks, []);
  assert.equal(reply.failures.length, 1);
  const {arn, reason, detail} = reply.failures[0];
  assert.equal(reason, 'RESOURCE:GPU');
  assert.equal(arn, (await cotenant.instance()).containerInstanceArn);
  const nearest = [...(await cotenant.gpus()).keys()].filter((gpuId) => detail.includes(gpuId));
  assert.equal(nearest.length, 1, `names one GPU: ${detail}`);
  assert.match(detail, /NVIDIA_MPS/);
  assert.match(detail, /0 of 2 GPUs idle/);
});

test('a worker meets its ceiling; its neighbours keep what they have', async () => {
  const arn = await cotenant.runOne(await cotenant.register(example('grow')));
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  assert.deepEqual(task.containers[0].gpuIds, [sharedGpuId], 'the example runs beside the three models');

  const greedy = (await cotenant.runtimeIds(arn)).get('greedy');
  const line = await cotenant.waitForLog(greedy, /refused at MiB/);
  const [, refusedAt, error, kept] =
      line.match(/refused at MiB (\d+) of 5120 \(error 2 (\w+)\), goes on with (\d+) MiB$/) ?? [];
  assert.equal(error, 'CUDA_ERROR_OUT_OF_MEMORY', line);
  assert.equal(Number(refusedAt), Number(kept) + 1);
  // The CUDA context's own memory counts against the ceiling: the worker gets the rest of it.
  assert.ok(Number(kept) > 1024 && Number(kept) <= 2048, line);
  await cotenant.waitForLog(greedy, new RegExp(` holds ${kept} MiB in \\d+ blocks, free 0 MiB `));

  for (const [name, runtimeId] of await cotenant.runtimeIds(threeModels)) {
    const mib = heldMib('three-models', name);
    await waitForOneMore(runtimeId, holds(mib));
    const other = cotenant.engine.logs(runtimeId).filter((text) => / holds /.test(text) && !holds(mib).test(text));
    assert.deepEqual(other, [], `${name} has held the same all the time`);
  }
  assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');
  assert.equal((await cotenant.task(threeModels)).lastStatus, 'RUNNING');
});

test('after StopTask the tasks are STOPPED and the GPUs IDLE', async () => {
  const {taskArns} = await cotenant.call('ListTasks');
  assert.equal(taskArns.length, 3);
  for (const arn of taskArns) {
    const task = await cotenant.stopAndWait(arn);
    assert.equal(task.desiredStatus, 'STOPPED');
    assert.equal(task.stopCode, 'UserInitiated');
    for (const container of task.containers) assert.equal(container.lastStatus, 'STOPPED');
  }
  for (const gpu of (await cotenant.gpus()).values()) {
    assert.equal(gpu.sharingMode, 'IDLE');
    assert.equal(gpu.remainingMemoryInMiB, L4_MIB);
    assert.equal(gpu.containerCount, 0);
  }
});

test('a whole GPU is given at once when the last share has left', async () => {
  const arn = await cotenant.runOne('whole-gpu');
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  await cotenant.waitForLog(task.containers[0].runtimeId, holds(heldMib('whole-gpu', 'train')));
  const environment = cotenant.engine.inspect(task.containers[0].runtimeId).Config.Env;
  assert.ok(!environment.some((entry) => entry.startsWith('CUDA_MPS_')), `no MPS there: ${environment}`);
  await cotenant.stopAndWait(arn);
});
