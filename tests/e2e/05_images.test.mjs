// Images that come from a registry: when it is asked, with which credentials, what is said when it
// refuses, and what is removed again.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';

import {
  Cotenant, Engine, IMAGE, RUN_UNTIL_STOPPED, definition, shellContainer, waitFor,
} from './harness.mjs';
import {CREDENTIALS, Registry} from './registry.mjs';

const present = (engine, image) => engine.docker(['image', 'inspect', image], {mayFail: true}).status === 0;

const withImage = (family, image) =>
  definition(family, shellContainer('main', RUN_UNTIL_STOPPED, {image}));

test('an image is pulled once for two tasks, seen as pulling, and its digest is told', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  const registry = await Registry.start(t, cotenant.engine);
  const {reference, digest} = registry.push('team/model:v1', 'one');
  assert.equal(present(cotenant.engine, reference), false);
  const before = Date.now() - 1000;

  const family = await cotenant.register(withImage('pulled', reference));
  const arns = [await cotenant.runOne(family), await cotenant.runOne(family)];
  for (const arn of arns) {
    const task = await cotenant.waitForTask(arn, 'RUNNING');
    assert.equal(task.containers[0].imageDigest, digest);
    assert.ok(task.pullStartedAt.getTime() >= before, `${task.pullStartedAt}`);
    assert.ok(task.pullStoppedAt >= task.pullStartedAt);
  }
  const pulled = cotenant.agent.tail(400).split('\n').filter((line) => line.includes(`pulled ${reference}`));
  assert.ok(pulled.some((line) => line.includes('new') && line.includes(digest)), pulled.join('\n'));

  // The registry goes away: what is on the engine is used, and the log says why.
  await registry.down();
  const cached = await cotenant.waitForTask(await cotenant.runOne(family), 'RUNNING');
  assert.equal(cached.containers[0].imageDigest, digest);
  assert.match(cotenant.agent.tail(400), /connection refused.*the image that is on the engine already is used/);
  await registry.up();

  // A newer image under the same tag is fetched; what runs is not touched.
  const newer = registry.push('team/model:v1', 'two');
  assert.notEqual(newer.digest, digest);
  const fresh = await cotenant.waitForTask(await cotenant.runOne(family), 'RUNNING');
  assert.equal(fresh.containers[0].imageDigest, newer.digest);
  for (const arn of arns) assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');
  await cotenant.stopAll();
});

test('what cannot be pulled stops the task with the reason in ECS\'s words', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  const registry = await Registry.start(t, cotenant.engine);
  for (const [family, image, pattern] of [
    ['no-tag', `${registry.name}/team/none:v9`, /^CannotPullContainerError: .*(manifest unknown|not found)/],
    ['bad-name', `${registry.name}/UPPER/case`, /^CannotPullContainerError: .*(invalid reference|must be lowercase)/],
  ]) {
    const arn = await cotenant.runOne(await cotenant.register(withImage(family, image)));
    const task = await cotenant.waitForTask(arn, 'STOPPED');
    assert.equal(task.stopCode, 'TaskFailedToStart');
    assert.match(task.stoppedReason, pattern);
    assert.match(task.containers[0].reason, pattern);
  }
});

test('credentials come from the docker config file, and a login counts at once', async (t) => {
  const folder = fs.mkdtempSync('/tmp/ct-config-');
  t.after(() => fs.rmSync(folder, {recursive: true, force: true}));
  const file = path.join(folder, 'config.json');
  const cotenant = await Cotenant.start({until: t, agentArgs: ['--registry-config', file]});
  const registry = await Registry.start(t, cotenant.engine, {password: true});
  const {reference, digest} = registry.push('private/model:v1', 'private', {auth: true});
  const family = await cotenant.register(withImage('private', reference));

  const refused = await cotenant.waitForTask(await cotenant.runOne(family), 'STOPPED');
  assert.match(refused.stoppedReason, /^CannotPullContainerError: .*no basic auth credentials/);

  fs.writeFileSync(file, JSON.stringify({auths: {[registry.name]: CREDENTIALS}}));
  const task = await cotenant.waitForTask(await cotenant.runOne(family), 'RUNNING');
  assert.equal(task.containers[0].imageDigest, digest);
  assert.match(cotenant.agent.tail(400), /pulling .*private\/model:v1 as tester/);
  assert.doesNotMatch(cotenant.agent.tail(4000), /secret/);
  await cotenant.stopAll();
});

test('unused images that cotenant pulled are removed, and nobody else\'s', async (t) => {
  const engine = Engine.get();
  const registry = await Registry.start(t, engine);
  const own = registry.push('team/own:v1', 'own');
  const users = registry.push('team/users:v1', 'users');
  engine.docker(['pull', users.reference]);
  const cotenant = await Cotenant.start({until: t, agentArgs: [
    '--image-cleanup-interval', '1s', '--image-cleanup-age', '2s', '--task-cleanup-wait', '2s']});
  const arns = [];
  for (const [family, image] of [['own', own.reference], ['users', users.reference], ['built', IMAGE]]) {
    arns.push(await cotenant.runOne(await cotenant.register(withImage(family, image))));
  }
  for (const arn of arns) await cotenant.waitForTask(arn, 'RUNNING');
  const label = await cotenant.instanceLabel(arns[0]);
  await cotenant.stopAll();
  // First the stopped containers go, then the image that only they held.
  await waitFor('the stopped containers are removed',
                () => engine.containers(`cotenant.instance=${label}`).length === 0);
  await waitFor('the image is removed', () => !present(engine, own.reference));
  assert.equal(present(engine, users.reference), true);
  assert.equal(present(engine, IMAGE), true);
  // A task that wants it again gets it again.
  const arn = await cotenant.runOne('own');
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  assert.equal(task.containers[0].imageDigest, own.digest);
  await cotenant.stopAll();
  engine.docker(['rmi', users.reference]);
});
