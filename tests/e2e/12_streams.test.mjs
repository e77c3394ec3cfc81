// `cotenant logs` and `cotenant exec`, against real containers.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import fs from 'node:fs';
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
               /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z from the side\n$/);
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
  const full = cotenant.shell(`${cotenant.binary} logs ${arn} side > /dev/full`);
  assert.equal(full.status, 1);
  assert.match(full.stderr, /the output cannot be written: No space left on device/);
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
  assert.equal(cotenant.cli(['exec', arn, 'main', '--', 'busybox', 'touch', '/tmp/end']).status, 0);
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
  const input = exec(['-i', arn, 'main', '--', 'busybox', 'wc', '-c'], {input: 'x'.repeat(1_000_000)});
  assert.deepEqual([input.status, input.stdout.trim()], [0, '1000000']);
  const much = exec([arn, 'main', '--', 'sh', '-c', 'busybox yes 0123456789 | busybox head -n 300000']);
  assert.deepEqual([much.status, much.stdout.length], [0, 3_300_000]);
  const missing = exec([arn, 'main', '--', '/no/such/program']);
  assert.notEqual(missing.status, 0);
  assert.match(missing.stdout + missing.stderr, /no such file or directory|not found/);
  const noTerminal = exec(['-it', arn, 'main', '--', 'sh']);
  assert.match(noTerminal.stderr, /standard input is no terminal/);
  // With a terminal (script(1) gives one), what runs there has one too.
  const program = 'test -t 0 && test -t 1 && until busybox stty size | grep -q 33.77; do sleep 0.1; done && echo sized; exit 9';
  const tty = cotenant.shell(
      `script -qec "stty rows 33 cols 77; ${cotenant.binary} exec -it ${arn} main -- sh -c '${program}'" /dev/null`);
  assert.match(tty.stdout, /sized/);
  assert.equal(tty.status, 9);

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
    if (daemon === cotenant.agent) {
      const away = await waitFor('the agent is missed', () => {
        const result = cotenant.cli(['logs', arn], {mayFail: true});
        return result.stderr.includes('is not connected') && result;
      });
      assert.match(away.stderr, /the agent of instance [0-9a-f]{32} is not connected/);
      assert.equal(away.status, 1);
    } else {
      assert.equal(cotenant.cli(['logs', arn], {mayFail: true}).status, 3, 'nobody answers');
    }
    await cotenant.restart(daemon);
    assert.equal(cotenant.cli(['logs', arn]).stdout, 'here\n');
  }
  await cotenant.stopAll();
});

const peakMib = (pid) => Number(/VmHWM:\s*(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

test('100 MB of logs and a slow reader: nothing is lost, and nothing piles up', async (t) => {
  const bytes = 100_000_000;
  const cotenant = await Cotenant.start({until: t});
  const family = await cotenant.register(definition('floods', shellContainer(
      'main', `busybox yes ${'0123456789'.repeat(99)}abcdefghi | busybox head -c ${bytes}`,
      {logConfiguration: {logDriver: 'json-file', options: {'max-size': '300m', 'max-file': '1'}}})));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'STOPPED');
  const before = peakMib(cotenant.agent.pid);
  const child = spawn(cotenant.binary, ['logs', arn], {env: cotenant.cliEnv, stdio: ['ignore', 'pipe', 'pipe']});
  const exited = once(child, 'exit');
  let got = 0;
  let clientPeak = 0;
  let chunks = 0;
  for await (const chunk of child.stdout) {
    got += chunk.length;
    // Slower than anyone on the way here.
    if (++chunks % 16 === 0) {
      if (chunks % 256 === 0 && child.exitCode === null) clientPeak = peakMib(child.pid);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  assert.deepEqual(await exited, [0, null]);
  assert.equal(got, bytes);
  const grown = peakMib(cotenant.agent.pid) - before;
  t.diagnostic(`control plane and agent grew by ${grown.toFixed(1)} MiB, the client took ${clientPeak.toFixed(1)} MiB`);
  assert.ok(grown < 24, `control plane and agent grew by ${grown} MiB`);
  assert.ok(clientPeak > 0 && clientPeak < 48, `the client took ${clientPeak} MiB`);
});

test('readers and programs whose client leaves do not stay', async (t) => {
  const cotenant = await Cotenant.start({until: t, split: true});
  const family = await cotenant.register(definition('ticks', shellContainer(
      'main', 'trap "exit 0" TERM; while :; do echo tick; sleep 0.1; done')));
  const arn = await cotenant.runOne(family);
  await cotenant.waitForTask(arn, 'RUNNING');
  // A pipe that closes ends the verb at the next line.
  assert.equal(cotenant.shell(`${cotenant.binary} logs -f ${arn} | busybox head -n 1`).stdout, 'tick\n');
  // More than may be open at a time (48 an instance).
  const begin = (args, stdin) => {
    const child = spawn(cotenant.binary, args, {env: cotenant.cliEnv, stdio: [stdin, 'pipe', 'pipe']});
    return new Promise((resolve, reject) => {
      let errors = '';
      child.stderr.on('data', (data) => { errors += data; });
      child.stdout.once('data', () => resolve(child));
      child.once('exit', (code, signal) => reject(new Error(`${args}: ended (${code ?? signal}): ${errors}`)));
    });
  };
  for (let round = 0; round < 10; ++round) {
    const children = await Promise.all(Array.from({length: 6}, () => begin(['logs', '-f', arn], 'ignore')));
    for (const child of children) child.kill(round % 2 === 0 ? 'SIGINT' : 'SIGKILL');
    await Promise.all(children.map((child) => once(child, 'exit')));
  }
  // A program that reads nothing of the input that is poured in holds nobody up when its client dies.
  const zeros = fs.openSync('/dev/zero', 'r');
  const program = await begin(['exec', '-i', arn, 'main', '--', 'sh', '-c', 'echo begun; sleep 1000'], zeros);
  fs.closeSync(zeros);
  program.kill('SIGKILL');
  await once(program, 'exit');
  assert.deepEqual(await cotenant.agent.end('SIGTERM'), {code: 0, signal: null});
  await cotenant.restart(cotenant.agent);
  await cotenant.stopAll();
});
