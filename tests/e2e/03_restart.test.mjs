// A control plane or an agent that dies and comes back: it knows all that it has acknowledged, and no
// container has noticed.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {
  Cotenant, RUN_UNTIL_STOPPED, definition, example, sharingContainer, shellContainer, waitFor,
} from './harness.mjs';

const sortedTasks = async (cotenant) => (await cotenant.call('ListTasks')).taskArns.sort();

// What must survive: of every container of the tasks, its identity on the engine.
async function survey(cotenant, arns) {
  const seen = [];
  for (const arn of arns) {
    for (const [name, runtimeId] of await cotenant.runtimeIds(arn)) {
      const {Running, StartedAt, Pid} = cotenant.engine.inspect(runtimeId).State;
      seen.push({arn, name, runtimeId, Running, StartedAt, Pid});
    }
  }
  return seen;
}

// Two tasks on the GPUs and one without; their ARNs, sorted.
async function runTasks(cotenant) {
  const families = [
    await cotenant.register(example('three-models')),
    await cotenant.register(example('fourth')),
    await cotenant.register(definition('plain', shellContainer('main', RUN_UNTIL_STOPPED))),
  ];
  const arns = [];
  for (const family of families) arns.push(await cotenant.runOne(family));
  for (const arn of arns) await cotenant.waitForTask(arn, 'RUNNING');
  return arns.sort();
}

for (const signal of ['SIGKILL', 'SIGTERM']) {
  test(`up, ended by ${signal} and started again, has touched nothing`, async (t) => {
    const cotenant = await Cotenant.start({until: t});
    const arns = await runTasks(cotenant);
    const before = await survey(cotenant, arns);
    const instanceBefore = await cotenant.instance();

    const status = await cotenant.server.end(signal);
    if (signal === 'SIGTERM') assert.deepEqual(status, {code: 0, signal: null});
    // While nothing of cotenant runs, the containers do.
    for (const {runtimeId} of before) assert.equal(cotenant.engine.inspect(runtimeId).State.Running, true);

    await cotenant.up();
    assert.deepEqual(await sortedTasks(cotenant), arns);
    for (const arn of arns) await cotenant.waitForTask(arn, 'RUNNING');
    assert.deepEqual(await survey(cotenant, arns), before);

    const instance = await cotenant.instance();
    assert.equal(instance.containerInstanceArn, instanceBefore.containerInstanceArn);
    assert.deepEqual(instance.gpuDevices, instanceBefore.gpuDevices);

    // It is in charge again: a share that does not fit beside the ones before is refused, and stopping works.
    const large = await cotenant.register(definition('large', sharingContainer('main', 20000, [])));
    const reply = await cotenant.call('RunTask', {taskDefinition: large});
    assert.equal(reply.failures[0]?.reason, 'RESOURCE:GPU');
    await cotenant.stopAll();
    for (const gpu of (await cotenant.gpus()).values()) assert.equal(gpu.sharingMode, 'IDLE');
  });
}

test('what was acknowledged a moment before kill -9 is known afterwards', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  const family = await cotenant.register(definition('early', sharingContainer('main', 2048, ['--memory-mib', '64'])));
  const acknowledged = [];
  for (let i = 0; i < 5; ++i) acknowledged.push(await cotenant.runOne(family, {clientToken: `early-${i}`}));
  await cotenant.server.end('SIGKILL');

  await cotenant.up();
  assert.deepEqual(await sortedTasks(cotenant), acknowledged.sort());
  for (const arn of acknowledged) await cotenant.waitForTask(arn, 'RUNNING');
  // One container each, though starting them was cut short.
  const label = await cotenant.instanceLabel(acknowledged[0]);
  assert.equal(cotenant.engine.containers(`cotenant.instance=${label}`).length, acknowledged.length);
  const {taskDefinition} = await cotenant.call('DescribeTaskDefinition', {taskDefinition: 'early'});
  assert.equal(taskDefinition.taskDefinitionArn, family);
  // The token was kept with the task: the same call again is no new task.
  const again = await cotenant.call('RunTask', {taskDefinition: family, clientToken: 'early-0'});
  assert.ok(acknowledged.includes(again.tasks[0].taskArn));
  assert.equal((await sortedTasks(cotenant)).length, acknowledged.length);
});

test('a container that ended while cotenant was away is found out', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  const family = await cotenant.register(definition('ends', shellContainer('main', RUN_UNTIL_STOPPED)));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'RUNNING');
  const id = (await cotenant.runtimeIds(arn)).get('main');

  await cotenant.server.end('SIGKILL');
  cotenant.engine.docker(['kill', '--signal', 'KILL', id]);
  await cotenant.up();
  const task = await cotenant.waitForTask(arn, 'STOPPED');
  assert.equal(task.stopCode, 'EssentialContainerExited');
  assert.equal(task.containers[0].exitCode, 137);
});

test('server and agent as two processes: either may die alone', async (t) => {
  const cotenant = await Cotenant.start({until: t, split: true});
  const arns = await runTasks(cotenant);
  const before = await survey(cotenant, arns);

  await cotenant.server.end('SIGKILL');
  await cotenant.restart(cotenant.server);
  assert.deepEqual(await sortedTasks(cotenant), arns);
  for (const arn of arns) await cotenant.waitForTask(arn, 'RUNNING');
  assert.deepEqual(await survey(cotenant, arns), before);

  await cotenant.agent.end('SIGKILL');
  await waitFor('the server sees that the agent is gone',
                async () => (await cotenant.instance()).agentConnected === false);
  assert.deepEqual(await sortedTasks(cotenant), arns);
  const share = await cotenant.register(definition('share', sharingContainer('main', 1024, ['--memory-mib', '64'])));
  const refused = await cotenant.call('RunTask', {taskDefinition: share});
  assert.equal(refused.failures[0]?.reason, 'AGENT');

  await cotenant.restart(cotenant.agent);
  for (const arn of arns) await cotenant.waitForTask(arn, 'RUNNING');
  assert.deepEqual(await survey(cotenant, arns), before);
  const added = await cotenant.runOne(share);
  await cotenant.waitForTask(added, 'RUNNING');
  await cotenant.stopAll();
});
