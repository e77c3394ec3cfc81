// An engine that goes away, hangs or answers nonsense; an agent without its control plane; an agent
// that is killed in the middle: no running container is touched, and all is well again afterwards.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Cotenant, Engine, RUN_UNTIL_STOPPED, definition, sharingContainer, shellContainer, waitFor} from './harness.mjs';
import {EngineProxy} from './engine_proxy.mjs';

async function runTwo(cotenant) {
  const arns = [];
  for (const task of [
    definition('plain', shellContainer('main', RUN_UNTIL_STOPPED)),
    definition('share', sharingContainer('main', 2048, ['--memory-mib', '64'])),
  ]) {
    arns.push(await cotenant.runOne(await cotenant.register(task)));
  }
  for (const arn of arns) await cotenant.waitForTask(arn, 'RUNNING');
  return arns;
}

async function survey(cotenant, arns) {
  const seen = [];
  for (const arn of arns) {
    for (const id of (await cotenant.runtimeIds(arn)).values()) {
      const {Running, StartedAt, Pid} = cotenant.engine.inspect(id).State;
      seen.push({id, Running, StartedAt, Pid});
    }
  }
  return seen;
}

test('an engine in trouble: running containers are left alone, and work goes on when it is back', async (t) => {
  const proxy = await EngineProxy.start(t, Engine.get());
  const cotenant = await Cotenant.start({until: t, dockerHost: proxy.host});
  const arns = await runTwo(cotenant);
  const before = await survey(cotenant, arns);
  for (const mode of ['away', 'garbage', 'error']) {
    await proxy.set(mode);
    const from = cotenant.agent.tail(2000).length;
    await waitFor(`the agent sees that the engine is ${mode}`,
                  () => /does not answer/.test(cotenant.agent.tail(2000).slice(from)));
    // What is asked meanwhile waits: a task that is placed, and one that is to stop.
    const added = await cotenant.runOne('plain');
    assert.equal((await cotenant.task(added)).lastStatus, 'PENDING');
    assert.deepEqual(await survey(cotenant, arns), before, mode);
    for (const arn of arns) assert.equal((await cotenant.task(arn)).lastStatus, 'RUNNING');

    await proxy.set('pass');
    await cotenant.waitForTask(added, 'RUNNING');
    assert.deepEqual(await survey(cotenant, arns), before, mode);
    await cotenant.stopAndWait(added);
  }
  // An engine that hangs: the calls in flight end at their time limits, which is not waited for here.
  await proxy.set('hang');
  const requests = proxy.requests;
  await waitFor('the agent asks', () => proxy.requests > requests);
  assert.deepEqual(await survey(cotenant, arns), before, 'hang');
  await proxy.set('pass');
  const late = await cotenant.runOne('plain');
  await cotenant.waitForTask(late, 'RUNNING');
  assert.deepEqual(await survey(cotenant, arns), before);
  await cotenant.stopAll();
});

test('without a control plane an agent goes on: what ends is told later, what runs is left alone', async (t) => {
  const cotenant = await Cotenant.start({until: t, split: true});
  const arns = await runTwo(cotenant);
  const before = await survey(cotenant, arns);
  await cotenant.server.end('SIGKILL');
  cotenant.engine.docker(['kill', '--signal', 'KILL', before[0].id]);
  // Killed without a control plane, and started again without one.
  await cotenant.agent.end('SIGKILL');
  cotenant.agent.spawn();
  await waitFor('the agent looks for its control plane',
                () => /no connection to/.test(cotenant.agent.tail(20)));
  assert.deepEqual((await Promise.all([cotenant.engine.inspect(before[1].id)])).map(
      ({State: {Running, StartedAt, Pid}}) => ({id: before[1].id, Running, StartedAt, Pid})), [before[1]]);

  await cotenant.restart(cotenant.server);
  const ended = await cotenant.waitForTask(arns[0], 'STOPPED');
  assert.equal(ended.stopCode, 'EssentialContainerExited');
  assert.equal(ended.containers[0].exitCode, 137);
  await cotenant.waitForTask(arns[1], 'RUNNING');
  assert.deepEqual(await survey(cotenant, [arns[1]]), [before[1]]);
  await cotenant.stopAll();
});
