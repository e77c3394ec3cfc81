// The rest of the task API by the AWS SDK for JavaScript, then the same by boto3 and the AWS CLI.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {before, beforeEach, test} from 'node:test';
import {fileURLToPath} from 'node:url';

import {
  Cotenant, DEADLINE_MS, RUN_UNTIL_STOPPED, definition, run, sharingContainer, shellContainer, waitFor,
} from './harness.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.resolve(HERE, '../..');
const WORKER = ['--memory-mib', '64'];

let cotenant;

before(async () => {
  cotenant = await Cotenant.start({split: true});
});

beforeEach(async () => {
  await cotenant.stopAll();
});

const tagsOf = async (arn) => Object.fromEntries(
    (await cotenant.call('ListTagsForResource', {resourceArn: arn})).tags.map((tag) => [tag.key, tag.value]));

test('a draining instance keeps what runs and gets nothing new', async () => {
  const family = await cotenant.register(definition('drain', shellContainer('main', RUN_UNTIL_STOPPED)));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'RUNNING');
  const {containerInstanceArn} = await cotenant.instance();
  const state = (status) => cotenant.call(
      'UpdateContainerInstancesState', {containerInstances: [containerInstanceArn], status});

  const drained = await state('DRAINING');
  assert.equal(drained.containerInstances[0].status, 'DRAINING');
  const refusal = await cotenant.refusal('RunTask', {taskDefinition: family});
  assert.match(refusal.message, /No Container Instances were found/);
  const started = await cotenant.call(
      'StartTask', {taskDefinition: family, containerInstances: [containerInstanceArn]});
  assert.deepEqual(started.failures.map((failure) => failure.reason), ['INACTIVE']);
  assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');

  await state('ACTIVE');
  const again = await cotenant.call(
      'StartTask', {taskDefinition: family, containerInstances: [containerInstanceArn], startedBy: 'me'});
  await cotenant.waitForTask(again.tasks[0].taskArn, 'RUNNING');
  const mine = await cotenant.call('ListTasks', {startedBy: 'me'});
  assert.deepEqual(mine.taskArns, [again.tasks[0].taskArn]);
});

test('a share that an override enlarges is what the container gets', async () => {
  const family = await cotenant.register(definition('enlarged', sharingContainer('web', 512, WORKER)));
  const share = {type: 'GPU', sharingStrategy: {nvidiaMps: {memory: 3000, maxComputePercent: 20}}};
  const arn = await cotenant.runOne(family, {overrides: {containerOverrides: [{
    name: 'web', memory: 96, resourceRequirements: [share],
    environment: [{name: 'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT', value: '0=1M'}],
  }]}});
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  assert.deepEqual(task.containers[0].gpuSharingStrategy, {nvidiaMps: {memory: 3000, maxComputePercent: 20}});
  const [gpu] = [...(await cotenant.gpus()).values()].filter((one) => one.sharingMode === 'NVIDIA_MPS');
  assert.equal(gpu.totalMemoryInMiB - gpu.remainingMemoryInMiB, 3000);
  const {Config, HostConfig} = cotenant.engine.inspect(task.containers[0].runtimeId);
  assert.ok(Config.Env.includes('CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3000M'), Config.Env.join(' '));
  assert.ok(Config.Env.includes('CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20'), Config.Env.join(' '));
  assert.equal(HostConfig.Memory, 96 * 1024 * 1024);
});

test('tags go where they are asked to, and change', async () => {
  const family = await cotenant.register({
    ...definition('tagged', shellContainer('main', RUN_UNTIL_STOPPED)),
    tags: [{key: 'team', value: 'a'}, {key: 'stage', value: 'test'}],
  });
  const arn = await cotenant.runOne(family, {
    propagateTags: 'TASK_DEFINITION', enableECSManagedTags: true, tags: [{key: 'team', value: 'b'}],
  });
  assert.deepEqual(await tagsOf(arn), {'aws:ecs:clusterName': 'default', stage: 'test', team: 'b'});
  await cotenant.call('TagResource', {resourceArn: arn, tags: [{key: 'extra', value: 'yes'}]});
  await cotenant.call('UntagResource', {resourceArn: arn, tagKeys: ['stage']});
  const {tasks} = await cotenant.call('DescribeTasks', {tasks: [arn], include: ['TAGS']});
  assert.deepEqual(tasks[0].tags.map((tag) => tag.key).sort(), ['aws:ecs:clusterName', 'extra', 'team']);
  const missing = await cotenant.refusal(
      'TagResource', {resourceArn: arn.replace(/.$/, 'x'), tags: [{key: 'a', value: 'b'}]});
  assert.equal(missing.name, 'ResourceNotFoundException');
});

test('definitions and clusters come to their end', async () => {
  const arn = await cotenant.register(definition('ends', shellContainer('main', 'exit 0')));
  const inactive = await cotenant.call('DeregisterTaskDefinition', {taskDefinition: arn});
  assert.equal(inactive.taskDefinition.status, 'INACTIVE');
  assert.ok(inactive.taskDefinition.deregisteredAt instanceof Date);
  assert.equal((await cotenant.refusal('RunTask', {taskDefinition: arn})).name, 'ClientException');
  const deleted = await cotenant.call('DeleteTaskDefinitions', {taskDefinitions: [arn]});
  assert.equal(deleted.taskDefinitions[0].status, 'DELETE_IN_PROGRESS');

  const {cluster} = await cotenant.call('CreateCluster', {clusterName: 'short', tags: [{key: 'k', value: 'v'}]});
  assert.deepEqual(await tagsOf(cluster.clusterArn), {k: 'v'});
  const gone = await cotenant.call('DeleteCluster', {cluster: 'short'});
  assert.equal(gone.cluster.status, 'INACTIVE');
  const busy = await cotenant.refusal('DeleteCluster', {cluster: 'default'});
  assert.equal(busy.name, 'ClusterContainsContainerInstancesException');
});

test('an instance that is deregistered with force stops its containers and stays away', async () => {
  const family = await cotenant.register(definition('forced', sharingContainer('web', 1024, WORKER)));
  const arn = await cotenant.runOne(family);
  const runtimeId = (await cotenant.waitForTask(arn, 'RUNNING')).containers[0].runtimeId;
  const {containerInstanceArn} = await cotenant.instance();

  const refusal = await cotenant.refusal(
      'DeregisterContainerInstance', {containerInstance: containerInstanceArn});
  assert.match(refusal.message, /Found running tasks on the instance/);
  const reply = await cotenant.call(
      'DeregisterContainerInstance', {containerInstance: containerInstanceArn, force: true});
  assert.equal(reply.containerInstance.status, 'INACTIVE');
  const task = await cotenant.task(arn);
  assert.equal(task.lastStatus, 'STOPPED');
  assert.equal(task.stopCode, 'TerminationNotice');
  await waitFor('its container stops', () => !cotenant.engine.inspect(runtimeId).State.Running);
  assert.equal(await cotenant.instance(), undefined, 'nothing is listed');

  // Started anew, its agent registers it again, and it takes work.
  await cotenant.agent.end('SIGTERM');
  await cotenant.restart(cotenant.agent);
  await cotenant.waitForTask(await cotenant.runOne(family), 'RUNNING');
});

// The machine was lost, was given up, and comes back with its containers still running.
test('a lost instance joins again only when its containers have stopped', async () => {
  const family = await cotenant.register(definition('lost', sharingContainer('web', 1024, WORKER)));
  const runtimeId = (await cotenant.waitForTask(await cotenant.runOne(family), 'RUNNING')).containers[0].runtimeId;
  const {containerInstanceArn} = await cotenant.instance();
  await cotenant.agent.end('SIGKILL');
  await waitFor('the agent is missed', async () => !(await cotenant.instance()).agentConnected);
  await cotenant.call('DeregisterContainerInstance', {containerInstance: containerInstanceArn, force: true});
  assert.ok(cotenant.engine.inspect(runtimeId).State.Running, 'nobody was there to stop it');

  await cotenant.restart(cotenant.agent);
  assert.ok(!cotenant.engine.inspect(runtimeId).State.Running, 'it has joined after that');
  for (const gpu of (await cotenant.gpus()).values()) assert.equal(gpu.sharingMode, 'IDLE');
});

test('account settings are kept', async () => {
  await cotenant.call('PutAccountSetting', {name: 'containerInsights', value: 'enabled'});
  const {settings} = await cotenant.call('ListAccountSettings', {name: 'containerInsights', effectiveSettings: true});
  assert.equal(settings[0].value, 'enabled');
  await cotenant.call('DeleteAccountSetting', {name: 'containerInsights'});
  assert.deepEqual((await cotenant.call('ListAccountSettings')).settings, []);
});

test('GET /metrics counts it', async () => {
  const reply = await fetch(`${cotenant.endpoint}/metrics`);
  assert.equal(reply.status, 200);
  const text = await reply.text();
  assert.match(text, /^cotenant_agents_connected 1$/m);
  assert.match(text, /^cotenant_api_requests_total\{operation="StartTask",outcome="ok"\} 2$/m);
  const checked = spawnSync('promtool', ['check', 'metrics'], {input: text, encoding: 'utf8'});
  assert.equal(checked.status, 0, `${checked.stdout}${checked.stderr}${checked.error ?? ''}`);
});

// Debian's boto3 and AWS CLI, whose models are older than GPU sharing: scripts/aws-model adds it.
function awsEnvironment() {
  const models = path.join(cotenant.folder, 'models');
  run('python3', [path.join(ROOT, 'scripts/aws-model'), models]);
  return {
    AWS_DATA_PATH: models, AWS_DEFAULT_REGION: 'us-east-1',
    AWS_SHARED_CREDENTIALS_FILE: cotenant.credentialsFile, AWS_EC2_METADATA_DISABLED: 'true', AWS_PAGER: '',
    COTENANT_ENDPOINT: cotenant.endpoint, AWS_MAX_ATTEMPTS: '1',
  };
}

test('boto3 drives all of it', () => {
  const {stdout} = run('/usr/bin/python3', [path.join(HERE, 'boto3_story.py')],
                       {env: awsEnvironment(), timeoutMs: 3 * DEADLINE_MS});
  assert.match(stdout, /the story has ended well/);
});

test('the AWS CLI registers, runs, lists and stops a sharing task', () => {
  const env = awsEnvironment();
  const aws = (...args) => {
    const {stdout} = run('/usr/bin/aws', ['ecs', ...args, '--endpoint-url', cotenant.endpoint, '--output', 'json'], {env});
    return stdout === '' ? {} : JSON.parse(stdout);
  };
  const file = path.join(cotenant.folder, 'cli.json');
  fs.writeFileSync(file, JSON.stringify(definition('cli', sharingContainer('web', 2000, WORKER))));
  const {taskDefinition} = aws('register-task-definition', '--cli-input-json', `file://${file}`);
  assert.equal(taskDefinition.containerDefinitions[0].resourceRequirements[0].sharingStrategy.nvidiaMps.memory, 2000);
  const {tasks: [task]} = aws('run-task', '--task-definition', 'cli', '--started-by', 'cli', '--tags', 'key=a,value=b');
  run('/usr/bin/aws', ['ecs', 'wait', 'tasks-running', '--tasks', task.taskArn, '--endpoint-url', cotenant.endpoint], {env});
  const {tasks: [seen]} = aws('describe-tasks', '--tasks', task.taskArn, '--include', 'TAGS');
  assert.deepEqual(seen.containers[0].gpuSharingStrategy, {nvidiaMps: {memory: 2000}});
  assert.deepEqual(seen.tags, [{key: 'a', value: 'b'}]);
  assert.deepEqual(aws('list-tasks', '--started-by', 'cli').taskArns, [task.taskArn]);
  const {containerInstanceArns} = aws('list-container-instances');
  const {containerInstances: [instance]} = aws(
      'describe-container-instances', '--container-instances', ...containerInstanceArns);
  assert.ok(instance.gpuDevices.some((gpu) => gpu.sharingMode === 'NVIDIA_MPS'));
  assert.equal(aws('stop-task', '--task', task.taskArn).task.desiredStatus, 'STOPPED');
  run('/usr/bin/aws', ['ecs', 'wait', 'tasks-stopped', '--tasks', task.taskArn, '--endpoint-url', cotenant.endpoint], {env});
  aws('deregister-task-definition', '--task-definition', 'cli:1');
});
