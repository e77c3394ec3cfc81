// `cotenant logs` and `cotenant exec`, against real containers.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {test} from 'node:test';

import {Cotenant, RUN_UNTIL_STOPPED, definition, shellContainer, waitFor} from './harness.mjs';

const idOf = (arn) => arn.slice(arn.lastIndexOf('/') + 1);

test('logs: all, the last lines, with times, since, of one of several containers, of a stopped one', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  const family = await cotenant.register(definition('talks',
      shellContainer('main', `for i in 1 2 3; do echo out $i; echo err $i >&2; done; ${RUN_UNTIL_STOPPED}`),
      shellContainer('side', `echo from the side; ${RUN_UNTIL_STOPPED}`)));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'RUNNING');
  await waitFor('it has printed', () => cotenant.cli(['logs', arn, 'main']).stdout.includes('out 3'));

  const all = cotenant.cli(['logs', idOf(arn).slice(0, 12), 'main']);
  assert.equal(all.stdout, 'out 1\nout 2\nout 3\n');
  assert.equal(all.stderr, 'err 1\nerr 2\nerr 3\n');
  assert.equal(cotenant.cli(['logs', arn, 'side']).stdout, 'from the side\n');
  const last = cotenant.cli(['logs', '--tail', '2', arn, 'main']);
  assert.equal((last.stdout + last.stderr).split('\n').length, 3);
  assert.match(cotenant.cli(['logs', '--timestamps', arn, 'side']).stdout,
               /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z from the side\n$/);
  assert.equal(cotenant.cli(['logs', '--since', '1h', arn, 'side']).stdout, 'from the side\n');
  assert.equal(cotenant.cli(['logs', '--since', '2999-01-01T00:00:00Z', arn, 'side']).stdout, '');

  for (const [args, pattern] of [
    [['logs', arn], /container: name one of main, side/],
    [['logs', arn, 'none'], /'none' is no container of the task, which has main, side/],
    [['logs', 'ffffffffffff', 'main'], /was not found/],
    [['logs', '--since', 'soon', arn, 'main'], /--since: 'soon' must be like/],
  ]) {
    const refused = cotenant.cli(args, {mayFail: true});
    assert.equal(refused.status, 1, args.join(' '));
    assert.match(refused.stderr, pattern);
  }
  await cotenant.stopAll();
  assert.equal(cotenant.cli(['logs', arn, 'side']).stdout, 'from the side\n');
});

test('logs -f goes on until the container ends, and stops with its reader', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  const family = await cotenant.register(definition('counts', shellContainer(
      'main', 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done; echo ready; ' +
      'until [ -e /tmp/end ]; do sleep 0.2; done; echo the end')));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'RUNNING');
  const follow = () => {
    const child = spawn(cotenant.binary, ['logs', '-f', arn], {env: cotenant.cliEnv, stdio: ['ignore', 'pipe', 'pipe']});
    child.text = '';
    child.stdout.on('data', (data) => { child.text += data; });
    return child;
  };
  const first = follow();
  await waitFor('it is ready', () => first.text.includes('ready\n'));
  const second = follow();
  await waitFor('it is ready', () => second.text.includes('ready\n'));
  second.kill('SIGKILL');  // takes nothing along
  assert.equal(cotenant.cli(['exec', arn, 'main', '--', 'touch', '/tmp/end']).status, 0);
  const [code] = await once(first, 'exit');
  assert.equal(code, 0);
  const lines = first.text.trimEnd().split('\n');
  assert.equal(lines.length, 2002);
  assert.equal(lines.at(-1), 'the end');
  for (let i = 1; i <= 2000; ++i) assert.equal(lines[i - 1], `line ${i}`);
});

test('exec: output, input, exit code, refusals; much output loses nothing', async (t) => {
  const cotenant = await Cotenant.start({until: t});
  const family = await cotenant.register(definition('host', shellContainer('main', RUN_UNTIL_STOPPED)));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'RUNNING');
  const exec = (args, options) => cotenant.cli(['exec', ...args], {mayFail: true, ...options});

  const both = exec([arn, 'main', '--', 'sh', '-c', 'echo to out; echo to err >&2; exit 42']);
  assert.deepEqual([both.status, both.stdout, both.stderr], [42, 'to out\n', 'to err\n']);
  const input = exec(['-i', arn, 'main', '--', 'wc', '-c'], {input: 'x'.repeat(1_000_000)});
  assert.deepEqual([input.status, input.stdout.trim()], [0, '1000000']);
  const much = exec([arn, 'main', '--', 'sh', '-c', 'yes 0123456789 | head -n 300000']);
  assert.deepEqual([much.status, much.stdout.length], [0, 3_300_000]);
  const missing = exec([arn, 'main', '--', '/no/such/program']);
  assert.notEqual(missing.status, 0);
  assert.match(missing.stdout + missing.stderr, /no such file or directory|not found/);
  const noTerminal = exec(['-it', arn, 'main', '--', 'sh']);
  assert.match(noTerminal.stderr, /standard input is no terminal/);
  // With a terminal (script(1) gives one), what runs there has one too.
  const quoted = `${cotenant.binary} exec -it ${arn} main -- sh -c 'test -t 0 && test -t 1 && echo a terminal'`;
  const tty = cotenant.shell(`script -qec "${quoted}" /dev/null`);
  assert.match(tty.stdout, /a terminal/);

  await cotenant.stopAll();
  const late = exec([arn, 'main', '--', 'true']);
  assert.equal(late.status, 1);
  assert.match(late.stderr, /is STOPPED; a program runs in a RUNNING one only/);
  const refused = await cotenant.refusal('ExecuteCommand',
      {task: arn, container: 'main', command: 'sh', interactive: true});
  assert.equal(refused.name, 'UnsupportedFeatureException');
  assert.match(refused.message, /cotenant exec TASK CONTAINER -- COMMAND/);
});

test('a stream ends when an end of it dies, and others can be opened afterwards', async (t) => {
  const cotenant = await Cotenant.start({until: t, split: true});
  const family = await cotenant.register(definition('long', shellContainer('main', `echo here; ${RUN_UNTIL_STOPPED}`)));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'RUNNING');
  for (const daemon of [cotenant.agent, cotenant.server]) {
    const child = spawn(cotenant.binary, ['logs', '-f', arn], {env: cotenant.cliEnv, stdio: ['ignore', 'pipe', 'pipe']});
    let text = '';
    let errors = '';
    child.stdout.on('data', (data) => { text += data; });
    child.stderr.on('data', (data) => { errors += data; });
    await waitFor('it has begun', () => text.includes('here'));
    const exited = once(child, 'exit');
    await daemon.end('SIGKILL');
    const [code] = await exited;
    assert.equal(code, 1, errors);
    assert.match(errors, /broke off|ended/);
    await cotenant.restart(daemon);
    assert.equal(cotenant.cli(['logs', arn]).stdout, 'here\n');
  }
  await cotenant.stopAll();
});
