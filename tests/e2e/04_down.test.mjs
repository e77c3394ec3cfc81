// `cotenant down` leaves nothing of what `up` has made, and touches nothing else.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import {test} from 'node:test';

import {Cotenant, IMAGE, example, processesNaming} from './harness.mjs';

for (const stillRunning of [false, true]) {
  test(`down leaves nothing${stillRunning ? ', though up is still running' : ''}`, async (t) => {
    const cotenant = await Cotenant.start({until: t});
    const arns = [];
    for (const name of ['three-models', 'fourth']) {
      arns.push(await cotenant.runOne(await cotenant.register(example(name))));
    }
    for (const arn of arns) await cotenant.waitForTask(arn, 'RUNNING');
    const label = await cotenant.instanceLabel(arns[0]);
    assert.equal(cotenant.engine.containers(`cotenant.instance=${label}`).length, 4);
    // A stranger's container, which happens to bear a label of the same name.
    const stranger = cotenant.engine.docker(
        ['run', '--detach', '--network', 'none', '--label', 'cotenant.instance=stranger', '--entrypoint', '/bin/sh',
         IMAGE, '-c', 'trap "exit 0" TERM; sleep 1000 & wait']).stdout.trim();
    t.after(() => cotenant.engine.docker(['rm', '--force', stranger]));

    if (!stillRunning) await cotenant.server.end('SIGTERM');
    const left = processesNaming(cotenant.runDir);
    assert.ok(left.some((line) => line.includes('gpusimd')), `gpusimd runs: ${left}`);
    assert.ok(left.some((line) => line.includes('nvidia-cuda-mps-control')), `MPS runs: ${left}`);
    cotenant.down();

    assert.deepEqual(cotenant.engine.containers(`cotenant.instance=${label}`), [], 'containers');
    assert.deepEqual(processesNaming(cotenant.runDir), [], 'processes');
    assert.equal(fs.existsSync(cotenant.runDir), false, 'run folder');
    assert.equal(fs.existsSync(cotenant.dataDir), false, 'data folder');
    assert.equal(cotenant.engine.inspect(stranger).State.Running, true, 'a stranger is left alone');
  });
}

test('down where there is nothing more to remove succeeds', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  await cotenant.server.end('SIGTERM');
  cotenant.down();
  cotenant.down();
});
