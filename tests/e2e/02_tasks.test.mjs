// Whole GPUs, how tasks end, overrides, counts, client tokens, lists, and what is refused.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {before, beforeEach, test} from 'node:test';

import {
  Cotenant, IMAGE, RUN_UNTIL_STOPPED, definition, sharingContainer, shellContainer, wholeGpuContainer,
} from './harness.mjs';

let cotenant;

before(async () => {
  cotenant = await Cotenant.start();
});

// Each test begins on an empty machine.
beforeEach(async () => {
  await cotenant.stopAll();
});

test('a whole GPU is DEDICATED to its task while the task runs', async () => {
  const family = await cotenant.register(
      definition('dedicated', wholeGpuContainer('train', 1, ['--memory-mib', '1024'])));
  const arn = await cotenant.runOne(family);
  const task = await cotenant.waitForTask(arn, 'RUNNING');

  const [gpuId, ...others] = task.containers[0].gpuIds;
  assert.deepEqual(others, [], 'one GPU was asked for');
  assert.equal(task.containers[0].gpuSharingStrategy, undefined);
  const gpu = (await cotenant.gpus()).get(gpuId);
  assert.equal(gpu.sharingMode, 'DEDICATED');
  assert.equal(gpu.containerCount, 1);
  const idle = [...(await cotenant.gpus()).values()].filter((other) => other.sharingMode === 'IDLE');
  assert.equal(idle.length, 1);

  const stopped = await cotenant.stopAndWait(arn);
  assert.equal(stopped.stopCode, 'UserInitiated');
  assert.equal((await cotenant.gpus()).get(gpuId).sharingMode, 'IDLE');
});

test('two whole GPUs for one container', async () => {
  const family = await cotenant.register(definition('both', wholeGpuContainer('train', 2, ['--memory-mib', '64'])));
  const task = await cotenant.waitForTask(await cotenant.runOne(family), 'RUNNING');
  assert.equal(new Set(task.containers[0].gpuIds).size, 2);
  assert.deepEqual([...(await cotenant.gpus()).values()].map((gpu) => gpu.sharingMode), ['DEDICATED', 'DEDICATED']);
});

test('a program that ends stops its task with its exit code', async () => {
  const family = await cotenant.register(
      definition('ends', wholeGpuContainer('train', 1, ['--memory-mib', '64', '--seconds', '1', '--exit-code', '7'])));
  const task = await cotenant.waitForTask(await cotenant.runOne(family), 'STOPPED');
  assert.equal(task.stopCode, 'EssentialContainerExited');
  assert.equal(task.stoppedReason, 'Essential container in task exited');
  assert.equal(task.containers[0].exitCode, 7);
  assert.ok(task.startedAt <= task.stoppedAt, 'startedAt is not after stoppedAt');
});

test('an essential container that ends takes the others with it; another one does not', async () => {
  const family = await cotenant.register(definition(
      'pair', shellContainer('helper', 'exit 0', {essential: false}), shellContainer('main', RUN_UNTIL_STOPPED)));
  const arn = await cotenant.runOne(family);
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  assert.equal(task.containers.find((container) => container.name === 'main').lastStatus, 'RUNNING');

  const both = await cotenant.register(definition(
      'pair', shellContainer('first', 'exit 3'), shellContainer('main', RUN_UNTIL_STOPPED)));
  const ended = await cotenant.waitForTask(await cotenant.runOne(both), 'STOPPED');
  assert.equal(ended.stopCode, 'EssentialContainerExited');
  assert.equal(ended.containers.find((container) => container.name === 'first').exitCode, 3);
});

test('a task whose image is absent fails to start', async () => {
  const container = shellContainer('main', 'true', {image: 'cotenant/no-such-image:1'});
  const family = await cotenant.register(definition('no-image', container));
  const task = await cotenant.waitForTask(await cotenant.runOne(family), 'STOPPED');
  assert.equal(task.stopCode, 'TaskFailedToStart');
  assert.match(task.stoppedReason, /CannotPullContainerError/);
  assert.match(task.containers[0].reason, /CannotPullContainerError.*cotenant\/no-such-image:1/s);
  assert.equal(task.containers[0].exitCode, undefined);
});

test('a program that is not in the image fails to start', async () => {
  const container = shellContainer('main', '', {entryPoint: ['/no/such/program']});
  const family = await cotenant.register(definition('no-program', container));
  const task = await cotenant.waitForTask(await cotenant.runOne(family), 'STOPPED');
  assert.equal(task.stopCode, 'TaskFailedToStart');
  assert.match(task.containers[0].reason, /Cannot(Start|Create)ContainerError/);
});

test('overrides replace the command and add to the environment', async () => {
  const script = `echo "first=$FIRST second=$SECOND third=$THIRD"; ${RUN_UNTIL_STOPPED}`;
  const container = shellContainer('main', 'exit 9', {
    environment: [{name: 'FIRST', value: 'defined'}, {name: 'SECOND', value: 'defined'}],
  });
  const family = await cotenant.register(definition('overridden', container));
  const arn = await cotenant.runOne(family, {
    overrides: {
      containerOverrides: [{
        name: 'main',
        command: [script],
        environment: [{name: 'SECOND', value: 'overridden'}, {name: 'THIRD', value: 'added'}],
      }],
    },
  });
  await cotenant.waitForTask(arn, 'RUNNING');
  const id = (await cotenant.runtimeIds(arn)).get('main');
  await cotenant.waitForLog(id, /^first=defined second=overridden third=added$/);
});

test('count 10: what fits is placed, the rest is told why not', async () => {
  // 10000 MiB: two on each GPU of 22563 MiB.
  const family = await cotenant.register(definition('ten', sharingContainer('main', 10000, ['--memory-mib', '64'])));
  const reply = await cotenant.call('RunTask', {taskDefinition: family, count: 10});
  assert.equal(reply.tasks.length, 4);
  assert.equal(reply.failures.length, 6);
  for (const failure of reply.failures) {
    assert.equal(failure.reason, 'RESOURCE:GPU');
    assert.match(failure.detail, /10000 MiB/);
  }
  for (const task of reply.tasks) await cotenant.waitForTask(task.taskArn, 'RUNNING');
  for (const gpu of (await cotenant.gpus()).values()) {
    assert.equal(gpu.containerCount, 2);
    assert.equal(gpu.remainingMemoryInMiB, gpu.totalMemoryInMiB - 20000);
  }
});

test('a client token makes a repeated call the same call', async () => {
  const family = await cotenant.register(definition('token', shellContainer('main', RUN_UNTIL_STOPPED)));
  const request = {taskDefinition: family, clientToken: 'token-1', startedBy: 'token-test'};
  const first = await cotenant.call('RunTask', request);
  const second = await cotenant.call('RunTask', request);
  assert.deepEqual(second.tasks.map((task) => task.taskArn), first.tasks.map((task) => task.taskArn));
  const {taskArns} = await cotenant.call('ListTasks', {startedBy: 'token-test'});
  assert.deepEqual(taskArns, first.tasks.map((task) => task.taskArn));

  const other = await cotenant.refusal('RunTask', {...request, count: 2});
  assert.equal(other.name, 'ConflictException');
});

test('ListTasks: filters and pages', async () => {
  const web = await cotenant.register(definition('web', shellContainer('main', RUN_UNTIL_STOPPED)));
  const batch = await cotenant.register(definition('batch', shellContainer('main', RUN_UNTIL_STOPPED)));
  const webTasks = (await cotenant.call('RunTask', {taskDefinition: web, count: 3, startedBy: 'alice'})).tasks;
  const batchTasks = (await cotenant.call('RunTask', {taskDefinition: batch, count: 2, startedBy: 'bob'})).tasks;
  const webArns = webTasks.map((task) => task.taskArn).sort();
  const batchArns = batchTasks.map((task) => task.taskArn).sort();
  for (const arn of [...webArns, ...batchArns]) await cotenant.waitForTask(arn, 'RUNNING');
  await cotenant.stopAndWait(batchArns[0]);

  const {containerInstanceArn} = await cotenant.instance();
  const cases = [
    [{}, [...webArns, batchArns[1]]],
    [{family: 'web'}, webArns],
    [{startedBy: 'bob'}, [batchArns[1]]],
    [{startedBy: 'nobody'}, []],
    [{family: 'batch', desiredStatus: 'STOPPED'}, [batchArns[0]]],
    [{desiredStatus: 'RUNNING', family: 'batch'}, [batchArns[1]]],
    [{containerInstance: containerInstanceArn, family: 'web'}, webArns],
    [{launchType: 'FARGATE'}, []],
  ];
  for (const [filter, want] of cases) {
    const {taskArns} = await cotenant.call('ListTasks', filter);
    assert.deepEqual(taskArns.sort(), [...want].sort(), `ListTasks ${JSON.stringify(filter)}`);
  }

  const paged = [];
  let pages = 0;
  let nextToken;
  do {
    const page = await cotenant.call('ListTasks', {maxResults: 1, nextToken});
    assert.ok(page.taskArns.length <= 1);
    paged.push(...page.taskArns);
    nextToken = page.nextToken;
    pages += 1;
  } while (nextToken && pages < 10);
  assert.equal(nextToken, undefined, 'the last page has no token');
  assert.deepEqual(paged.sort(), [...webArns, batchArns[1]].sort());
});

// A container with this one resource requirement.
const requiring = (...resourceRequirements) =>
    definition('refused', {name: 'main', image: IMAGE, memory: 64, resourceRequirements});
const sharing = (nvidiaMps) => ({type: 'GPU', sharingStrategy: {nvidiaMps}});

// What is refused: call, input, the SDK's exception, and what its message must name.
const REFUSALS = [
  ['RegisterTaskDefinition', requiring({type: 'GPU'}), 'InvalidParameterException',
   /containerDefinitions\[0\]\.resourceRequirements\[0\].*neither value nor sharingStrategy/],
  ['RegisterTaskDefinition', requiring({...sharing({memory: 1024}), value: '1'}), 'InvalidParameterException',
   /containerDefinitions\[0\]\.resourceRequirements\[0\].*both value and sharingStrategy/],
  ['RegisterTaskDefinition', requiring(sharing({memory: 0})), 'InvalidParameterException',
   /containerDefinitions\[0\]\.resourceRequirements\[0\]\.sharingStrategy\.nvidiaMps\.memory/],
  ['RegisterTaskDefinition', requiring(sharing({maxComputePercent: 50})), 'InvalidParameterException',
   /sharingStrategy\.nvidiaMps\.memory/],
  ['RegisterTaskDefinition', requiring(sharing({memory: 1024, maxComputePercent: 101})), 'InvalidParameterException',
   /nvidiaMps\.maxComputePercent/],
  ['RegisterTaskDefinition', requiring({type: 'GPU', value: '0'}), 'InvalidParameterException',
   /resourceRequirements\[0\]\.value/],
  ['RegisterTaskDefinition', requiring({type: 'GPU', value: '0.5'}), 'UnsupportedFeatureException',
   /resourceRequirements\[0\]\.value/],
  ['RegisterTaskDefinition', requiring({type: 'NeuronDevice', value: 'ALL'}), 'UnsupportedFeatureException',
   /resourceRequirements\[0\]\.type/],
  ['RegisterTaskDefinition', requiring(sharing({memory: 512}), sharing({memory: 512})), 'InvalidParameterException',
   /containerDefinitions\[0\]\.resourceRequirements/],
  ['RegisterTaskDefinition',
   definition('mixed', sharingContainer('a', 1024, []), wholeGpuContainer('b', 1, [])), 'InvalidParameterException',
   /containerDefinitions\[1\]\.resourceRequirements\[0\].*same option/],
  ['RegisterTaskDefinition', {...requiring(sharing({memory: 512})), networkMode: 'host'}, 'InvalidParameterException',
   /networkMode host/],
  ['RegisterTaskDefinition', definition('no spaces', shellContainer('main', 'true')), 'InvalidParameterException',
   /family/],
  ['RegisterTaskDefinition', definition('none'), 'InvalidParameterException', /containerDefinitions/],
  ['RegisterTaskDefinition', definition('twice', shellContainer('a', 'true'), shellContainer('a', 'true')),
   'InvalidParameterException', /containerDefinitions\[1\]\.name.*twice/],
  ['RegisterTaskDefinition', definition('no-memory', {name: 'main', image: IMAGE}), 'InvalidParameterException',
   /containerDefinitions\[0\]\.memory/],
  ['RegisterTaskDefinition', definition('firelens', shellContainer('main', 'true', {firelensConfiguration: {type: 'fluentbit'}})),
   'UnsupportedFeatureException', /containerDefinitions\[0\]\.firelensConfiguration/],
  ['DescribeTaskDefinition', {taskDefinition: 'no-such-family'}, 'ClientException', /no-such-family/],
  ['RunTask', {taskDefinition: 'no-such-family'}, 'ClientException', /no-such-family/],
  ['RunTask', {taskDefinition: 'no-such-family', count: 11}, 'InvalidParameterException', /count/],
  ['RunTask', {taskDefinition: 'no-such-family', launchType: 'FARGATE'}, 'UnsupportedFeatureException', /launchType/],
  ['RunTask', {taskDefinition: 'no-such-family', cluster: 'no-such-cluster'}, 'ClusterNotFoundException',
   /no-such-cluster/],
  ['StopTask', {task: '0123456789abcdef0123456789abcdef'}, 'InvalidParameterException',
   /0123456789abcdef0123456789abcdef/],
  ['ListTasks', {cluster: 'no-such-cluster'}, 'ClusterNotFoundException', /no-such-cluster/],
  ['ListTasks', {nextToken: 'not-a-token'}, 'InvalidParameterException', /nextToken/],
  ['ListTasks', {maxResults: 101}, 'InvalidParameterException', /maxResults/],
  ['DescribeTasks', {tasks: []}, 'InvalidParameterException', /tasks/],
  ['CreateService', {serviceName: 'web', taskDefinition: 'web', desiredCount: 1}, 'UnsupportedFeatureException',
   /CreateService/],
];

test('what is refused, and how', async (t) => {
  for (const [call, input, exception, message] of REFUSALS) {
    await t.test(`${call} ${JSON.stringify(input).slice(0, 100)}: ${exception}`, async () => {
      const error = await cotenant.refusal(call, input);
      assert.equal(error.name, exception, error.message);
      assert.match(error.message, message);
      assert.equal(error.$fault, 'client');
    });
  }
});

test('an override that names no container of the task is refused', async () => {
  const family = await cotenant.register(definition('named', shellContainer('main', 'true')));
  const error = await cotenant.refusal(
      'RunTask', {taskDefinition: family, overrides: {containerOverrides: [{name: 'other', command: ['true']}]}});
  assert.equal(error.name, 'InvalidParameterException');
  assert.match(error.message, /overrides\.containerOverrides\[0\]\.name.*other/);
});

test('more than any machine here could give is a failure, not an exception', async () => {
  const family = await cotenant.register(definition('huge', sharingContainer('main', 100000, [])));
  const reply = await cotenant.call('RunTask', {taskDefinition: family});
  assert.deepEqual(reply.tasks, []);
  assert.equal(reply.failures.length, 1);
  assert.equal(reply.failures[0].reason, 'RESOURCE:GPU');
  assert.match(reply.failures[0].detail, /Infeasible/);
});

test('explain says beforehand where a task goes, runs nothing, and says afterwards why it is there', async () => {
  const input = definition('explained', sharingContainer('main', 9000, ['--memory-mib', '64']));
  const file = path.join(cotenant.folder, 'explained.json');
  fs.writeFileSync(file, JSON.stringify(input));
  const told = cotenant.cli(['explain', file, '--count', '2']);
  assert.match(told.stdout, /^explained \(not registered\): 2 in cluster default, group family:explained\n/);
  assert.match(told.stdout, /\n1: goes to instance [0-9a-f]{12}, GPU \d GPU-[0-9a-f]{8} \(IDLE\)/);
  const {request, decisions} = JSON.parse(cotenant.cli(['explain', file, '--count', '2', '--output', 'json']).stdout);
  assert.equal(request.gpu.memoryInMiB, 9000);
  assert.deepEqual((await cotenant.call('ListTasks', {})).taskArns, []);
  assert.equal((await cotenant.refusal('DescribeTaskDefinition', {taskDefinition: 'explained'})).name, 'ClientException');

  const family = await cotenant.register(input);
  const {tasks} = await cotenant.call('RunTask', {taskDefinition: family, count: 2});
  assert.deepEqual(tasks.map((task) => task.containers[0].gpuIds[0]),
                   decisions.map((decision) => decision.place.gpus[0].gpuId));
  const id = tasks[0].taskArn.split('/').at(-1);
  const why = cotenant.cli(['explain', id.slice(0, 12)]);
  assert.match(why.stdout, new RegExp(`^task ${id.slice(0, 12)} is \\w+ on instance`));
  assert.match(why.stdout, /tight -?\d+, unusable -?\d+, cpu -?\d+, scarcity -?\d+ per-mille of a GPU/);

  const run = path.join(cotenant.folder, 'run.json');
  fs.writeFileSync(run, JSON.stringify({taskDefinition: family, count: 3, placementStrategy: [{type: 'binpack', field: 'gpuMemory'}]}));
  const full = cotenant.cli(['explain', run, '--count', '100'], {mayFail: true});
  assert.equal(full.status, 1, 'not all of them find a place');
  assert.match(full.stdout, /not placed: RESOURCE:GPU: NoFit/);
  assert.match(full.stdout, /ranked by: binpack gpuMemory/);
});
