// What every end-to-end test needs: a Docker engine, the example image, a running cotenant, and the
// ordinary AWS SDK pointed at it. All that is started here is torn down again: when the tests of a file
// have ended, well or not, and on SIGINT and SIGTERM.
//
// Environment (all optional):
//   COTENANT_BUILD_DIR         where cotenant and gpu-worker were built; default: build/ of this tree
//   COTENANT_TEST_DOCKER_HOST  an engine to use; default: a private one, started and stopped here
import {spawn, spawnSync} from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import {after} from 'node:test';
import {fileURLToPath} from 'node:url';

import * as ecs from '@aws-sdk/client-ecs';
import {fromIni} from '@aws-sdk/credential-provider-ini';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const BUILD_DIR = path.resolve(process.env.COTENANT_BUILD_DIR ?? path.join(ROOT, 'build'));
export const BINARY = path.join(BUILD_DIR, 'cotenant');
export const WORKER = path.join(BUILD_DIR, 'examples/gpu-worker/gpu-worker');
const POLL_MS = 100;

export const IMAGE = 'cotenant/gpu-worker:latest';
// Generous: the machines that run this may be slow and shared. Reached only by a failure.
export const DEADLINE_MS = 60_000;

// ---- Deadlines ------------------------------------------------------------------------------------

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Polls `probe` until it gives a truthy value, which is returned. What it throws counts as "not yet"
// and is part of the message at the deadline; a Fatal ends the wait at once.
export class Fatal extends Error {}

export async function waitFor(what, probe, deadlineMs = DEADLINE_MS) {
  const end = Date.now() + deadlineMs;
  let last;
  for (;;) {
    try {
      const value = await probe();
      if (value) return value;
      last = `last seen: ${JSON.stringify(value)}`;
    } catch (error) {
      if (error instanceof Fatal) throw error;
      last = `last error: ${error.message}`;
    }
    if (Date.now() >= end) throw new Error(`${what}: not within ${deadlineMs} ms; ${last}`);
    await pause(POLL_MS);
  }
}

// ---- Programs -------------------------------------------------------------------------------------

// Runs a program to its end; throws with its output unless it succeeded (or `mayFail`).
export function run(program, args, {env = {}, mayFail = false, timeoutMs = DEADLINE_MS, input} = {}) {
  const result = spawnSync(program, args, {
    encoding: 'utf8',
    env: {...process.env, ...env},
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    input,
    timeout: timeoutMs,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (!mayFail && (result.error || result.status !== 0)) {
    const why = result.error ? result.error.message : `exit ${result.status ?? result.signal}`;
    throw new Error(`${program} ${args.join(' ')}: ${why}\n${result.stdout}${result.stderr}`);
  }
  return result;
}

// The processes whose command line or environment names `text`: what a folder's programs left behind.
export function processesNaming(text) {
  const found = [];
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (Number(pid) === process.pid) continue;
    for (const file of ['cmdline', 'environ']) {
      try {
        if (!fs.readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(text)) continue;
        found.push(`${pid}: ${fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`);
        break;
      } catch {
        continue;  // it has ended meanwhile, or is another user's
      }
    }
  }
  return found;
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const {port} = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// ---- Teardown -------------------------------------------------------------------------------------

const once = (action) => {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
};

const teardowns = [];  // synchronous functions, run in reverse order

function tearDown() {
  const errors = [];
  while (teardowns.length > 0) {
    try {
      teardowns.pop()();
    } catch (error) {
      errors.push(error.message);
    }
  }
  return errors;
}

for (const [signal, status] of [['SIGINT', 130], ['SIGTERM', 143]]) {
  process.once(signal, () => {
    for (const error of tearDown()) process.stderr.write(`${error}\n`);
    process.exit(status);
  });
}

after(() => {
  const errors = tearDown();
  if (errors.length > 0) throw new Error(`teardown: ${errors.join('\n')}`);
});

// ---- The engine -----------------------------------------------------------------------------------

export class Engine {
  // Once per process: the engine that the environment names, or a private one.
  static #shared;

  static get() {
    Engine.#shared ??= Engine.#start();
    return Engine.#shared;
  }

  static #start() {
    let host = process.env.COTENANT_TEST_DOCKER_HOST;
    if (!host) {
      const parent = fs.mkdtempSync('/tmp/cotenant-engine.');
      const script = path.join(ROOT, 'scripts/docker-engine.sh');
      teardowns.push(() => {
        run(script, ['stop', `${parent}/e`], {timeoutMs: 120_000});
        fs.rmdirSync(parent);
      });
      host = run(script, ['start', `${parent}/e`], {timeoutMs: 120_000}).stdout.trim();
    }
    const engine = new Engine(host);
    if (engine.docker(['image', 'inspect', IMAGE], {mayFail: true}).status !== 0) {
      run(path.join(ROOT, 'scripts/build-image.sh'), [host, BUILD_DIR, IMAGE]);
    }
    return engine;
  }

  constructor(host) {
    this.host = host;
  }

  docker(args, options = {}) {
    return run('docker', args, {...options, env: {DOCKER_HOST: this.host}});
  }

  inspect(id) {
    return JSON.parse(this.docker(['inspect', id]).stdout)[0];
  }

  // Standard output and standard error of a container, as lines.
  logs(id) {
    const {stdout, stderr} = this.docker(['logs', id]);
    return `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
  }

  // The ids of all containers, running or not, that carry the label.
  containers(label) {
    const {stdout} = this.docker(['ps', '--all', '--quiet', '--no-trunc', '--filter', `label=${label}`]);
    return stdout.split('\n').filter((line) => line !== '');
  }
}

// ---- cotenant -------------------------------------------------------------------------------------

// One process of cotenant (up, server or agent) and its log.
export class Daemon {
  #child;
  #exited;

  // env: more of the environment. mountsOf: a process whose mounts it is to see.
  constructor(args, logFile, {env = {}, mountsOf} = {}) {
    this.args = args;
    this.logFile = logFile;
    this.command = mountsOf ? ['nsenter', `--mount=/proc/${mountsOf}/ns/mnt`, BINARY] : [BINARY];
    this.env = env;
  }

  spawn() {
    const log = fs.openSync(this.logFile, 'a');
    const [program, ...first] = this.command;
    this.#child = spawn(program, [...first, ...this.args],
                        {stdio: ['ignore', log, log], env: {...process.env, ...this.env}});
    fs.closeSync(log);
    this.#exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve({code, signal}));
      this.#child.once('error', (error) => resolve({code: null, signal: null, error}));
    });
  }

  get running() {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid() {
    return this.#child.pid;
  }

  // Sends the signal and waits for the end: {code, signal}.
  async end(signal) {
    if (!this.running) throw new Error(`${this}: is not running`);
    this.#child.kill(signal);
    let timer;
    const limit = new Promise((resolve) => { timer = setTimeout(resolve, DEADLINE_MS); });
    const status = await Promise.race([this.#exited, limit]);
    clearTimeout(timer);
    if (!status) throw new Error(`${this}: did not end within ${DEADLINE_MS} ms after ${signal}`);
    return status;
  }

  // For teardown, where nothing can be awaited.
  killNow() {
    if (this.running) this.#child.kill('SIGKILL');
  }

  tail(lines = 40) {
    const text = fs.existsSync(this.logFile) ? fs.readFileSync(this.logFile, 'utf8') : '';
    return text.trimEnd().split('\n').slice(-lines).join('\n');
  }

  toString() {
    return `cotenant ${this.args.join(' ')}`;
  }
}

const ALL_GPUS = '2xL4';

// An installation of cotenant: its folders, its port, its processes and a client for it.
export class Cotenant {
  // until: the test context at whose end it is torn down; default: at the end of the file.
  // split: `server` and `agent` as two processes instead of `up`.
  // gpus: those to simulate; null: agentArgs name a driver. agentArgs: more options of whoever is the agent.
  // dockerHost: where it finds the engine; default: where the tests find it. engine: default: the tests' own,
  // started when it is first needed. env, mountsOf: as Daemon's.
  static async start({until, split = false, gpus = ALL_GPUS, agentArgs = [], dockerHost,
                       engine = Engine.get(), env, mountsOf} = {}) {
    if (!fs.existsSync(BINARY)) throw new Error(`${BINARY} is absent; run: make build`);
    const cotenant = new Cotenant(engine, await freePort(), split, gpus, agentArgs, dockerHost, {env, mountsOf});
    const destroy = once(() => cotenant.#destroy());
    teardowns.push(destroy);
    until?.after(destroy);
    await cotenant.up();
    return cotenant;
  }

  constructor(engine, port, split, gpus, agentArgs, dockerHost = engine.host, spawning = {}) {
    this.engine = engine;
    // Short: unix sockets lie below it.
    this.folder = fs.mkdtempSync('/tmp/ct-');
    fs.chmodSync(this.folder, 0o711);  // the MPS server and the containers pass through it
    this.dataDir = path.join(this.folder, 'data');
    this.runDir = path.join(this.folder, 'run');
    this.endpoint = `http://127.0.0.1:${port}`;
    this.credentialsFile = path.join(this.dataDir, 'credentials');
    this.apiSocket = path.join(split ? path.join(this.folder, 'server-run') : this.runDir, 'api.sock');
    const listen = ['--listen', `127.0.0.1:${port}`];
    const node = ['--run-dir', this.runDir, ...(gpus ? ['--simulate-gpus', gpus] : []),
                  '--docker-host', dockerHost, ...agentArgs];
    const log = (name) => path.join(this.folder, `${name}.log`);
    if (split) {
      this.agentDataDir = path.join(this.folder, 'agent');
      this.server = new Daemon(
          ['server', ...listen, '--data-dir', this.dataDir, '--run-dir', this.runDirOf(this.dataDir)], log('server'));
      this.joinTokenFile = path.join(this.folder, 'join-token');
      this.agent = new Daemon(
          ['agent', '--server', this.endpoint, '--cluster', 'default', '--data-dir', this.agentDataDir,
           '--join-token-file', this.joinTokenFile, ...node],
          log('agent'), spawning);
      this.daemons = [this.server, this.agent];
    } else {
      this.agentDataDir = this.dataDir;
      this.server = this.agent = new Daemon(['up', ...listen, '--data-dir', this.dataDir, ...node], log('up'), spawning);
      this.daemons = [this.server];
    }
    this.client = new ecs.ECSClient({
      endpoint: this.endpoint,
      region: 'us-east-1',
      // As AWS_SHARED_CREDENTIALS_FILE does it, but for each installation its own.
      credentials: fromIni({filepath: this.credentialsFile, profile: 'default', ignoreCache: true}),
      maxAttempts: 1,
    });
  }

  // A server beside an agent has a run folder of its own.
  runDirOf(dataDir) {
    return dataDir === this.agentDataDir ? this.runDir : path.join(this.folder, 'server-run');
  }

  // Starts what is not running, and waits until the server answers and the agent has joined.
  async up() {
    for (const daemon of this.daemons) {
      if (daemon === this.agent && this.joinTokenFile && !daemon.running) await this.#makeJoinToken();
      if (!daemon.running) daemon.spawn();
    }
    await this.ready();
  }

  // Once: an agent that has joined has its own key.
  async #makeJoinToken() {
    if (fs.existsSync(this.joinTokenFile)) return;
    const {stdout} = await this.#until([this.server], 'the server makes a join token',
        () => run(BINARY, ['token', 'create', '--endpoint', `unix://${this.apiSocket}`]));
    fs.writeFileSync(this.joinTokenFile, stdout, {mode: 0o600});
  }

  // One daemon alone: starts it and waits until the installation is whole again.
  async restart(daemon) {
    daemon.spawn();
    await this.ready();
  }

  async ready() {
    await this.#until(this.daemons, 'GET /healthz answers 200', async () => {
      const reply = await fetch(`${this.endpoint}/healthz`, {signal: AbortSignal.timeout(2000)});
      return reply.status === 200;
    });
    await this.#until(this.daemons, 'the agent has joined', async () => (await this.instance())?.agentConnected);
  }

  // waitFor, but a daemon that ends meanwhile is the answer: its log is shown.
  #until(daemons, what, probe) {
    return waitFor(what, async () => {
      for (const daemon of daemons) {
        if (!daemon.running) throw new Fatal(`${daemon}: has ended\n${daemon.tail()}`);
      }
      return probe();
    });
  }

  logTails() {
    return this.daemons.map((daemon) => `--- ${daemon}\n${daemon.tail()}`).join('\n');
  }

  // ---- The command line, as this installation's user.
  get binary() {
    return BINARY;
  }

  get cliEnv() {
    return {...process.env, COTENANT_ENDPOINT: this.endpoint, AWS_SHARED_CREDENTIALS_FILE: this.credentialsFile};
  }

  cli(args, options = {}) {
    return run(BINARY, args, {...options, env: this.cliEnv});
  }

  shell(command) {
    return run('/bin/sh', ['-c', command], {mayFail: true, env: this.cliEnv});
  }

  // ---- The API by the SDK's command names: call('RunTask', {...}).
  call(name, input = {}) {
    return this.client.send(new ecs[`${name}Command`](input));
  }

  // As `call`, where the answer must be a refusal: returns the SDK's exception.
  async refusal(name, input) {
    let reply;
    try {
      reply = await this.call(name, input);
    } catch (error) {
      if (error.$metadata?.httpStatusCode === undefined) throw error;  // not an answer of the server
      return error;
    }
    throw new Error(`${name} was not refused: ${JSON.stringify(reply)}`);
  }

  async register(definition) {
    const reply = await this.call('RegisterTaskDefinition', definition);
    return reply.taskDefinition.taskDefinitionArn;
  }

  // Runs one task that must be placed; its ARN.
  async runOne(taskDefinition, more = {}) {
    const reply = await this.call('RunTask', {taskDefinition, ...more});
    if (reply.failures.length > 0 || reply.tasks.length !== 1) {
      throw new Error(`RunTask ${taskDefinition}: ${JSON.stringify(reply.failures)}`);
    }
    return reply.tasks[0].taskArn;
  }

  async task(arn) {
    const reply = await this.call('DescribeTasks', {tasks: [arn]});
    if (reply.tasks.length !== 1) throw new Error(`DescribeTasks: ${JSON.stringify(reply.failures)}`);
    return reply.tasks[0];
  }

  async waitForTask(arn, status) {
    let seen;
    try {
      return await waitFor(`task ${arn} is ${status}`, async () => {
        seen = await this.task(arn);
        if (seen.lastStatus === status) return seen;
        if (seen.lastStatus === 'STOPPED') throw new Fatal(`task ${arn} is STOPPED instead of ${status}`);
        return undefined;
      });
    } catch (error) {
      const containers = seen?.containers?.map((c) => [c.name, c.lastStatus, c.exitCode, c.reason]);
      error.message += `\nstoppedReason: ${seen?.stoppedReason}; containers: ` +
          `${JSON.stringify(containers)}\n${this.logTails()}`;
      throw error;
    }
  }

  async stopAndWait(arn) {
    await this.call('StopTask', {task: arn});
    return this.waitForTask(arn, 'STOPPED');
  }

  // Every task in the cluster: stopped and gone from the engine.
  async stopAll() {
    const {taskArns} = await this.call('ListTasks');
    for (const arn of taskArns) await this.call('StopTask', {task: arn});
    for (const arn of taskArns) await this.waitForTask(arn, 'STOPPED');
  }

  async instance() {
    const {containerInstanceArns} = await this.call('ListContainerInstances');
    if (containerInstanceArns.length === 0) return undefined;
    const reply = await this.call('DescribeContainerInstances', {containerInstances: containerInstanceArns});
    return reply.containerInstances[0];
  }

  // gpuId -> GpuDevice
  async gpus() {
    const {gpuDevices} = await this.instance();
    return new Map(gpuDevices.map((gpu) => [gpu.gpuId, gpu]));
  }

  // ---- What the containers of a task are on the engine: name -> runtime id.
  async runtimeIds(arn) {
    const {containers} = await this.task(arn);
    return new Map(containers.map((container) => [container.name, container.runtimeId]));
  }

  async waitForLog(runtimeId, pattern) {
    return waitFor(`container ${runtimeId} prints ${pattern}`, () => {
      const lines = this.engine.logs(runtimeId);
      const line = lines.find((text) => pattern.test(text));
      if (!line) throw new Error(`it has printed:\n${lines.slice(-10).join('\n')}`);
      return line;
    });
  }

  // ---- The end.
  // The value of the label cotenant.instance that this installation gives its containers.
  async instanceLabel(taskArn) {
    const [runtimeId] = (await this.runtimeIds(taskArn)).values();
    return this.engine.inspect(runtimeId).Config.Labels['cotenant.instance'];
  }

  // Where everything lies, `up` has noted down in its data folder.
  down() {
    return run(BINARY, ['down', '--data-dir', this.agentDataDir], {timeoutMs: 120_000});
  }

  #destroy() {
    this.client.destroy();
    for (const daemon of this.daemons) daemon.killNow();
    let failure;
    for (const dataDir of new Set([this.agentDataDir, this.dataDir])) {
      // Straight to the engine: this process waits here, and with it a proxy that it may be.
      const result = run(BINARY, ['down', '--data-dir', dataDir, '--docker-host', this.engine.host],
                         {mayFail: true, timeoutMs: 120_000});
      if (result.status !== 0) failure = `cotenant down: ${result.stdout}${result.stderr}\n${this.logTails()}`;
    }
    fs.rmSync(this.folder, {recursive: true, force: true});
    if (failure) throw new Error(failure);
  }
}

// ---- Task definitions -----------------------------------------------------------------------------

// The examples of the repository, as the SDK takes them.
export function example(name) {
  return JSON.parse(fs.readFileSync(path.join(ROOT, 'examples', `${name}.json`), 'utf8'));
}

// A container without GPU around one line of shell. stopTimeout is short, for shells that are waiting.
export function shellContainer(name, script, more = {}) {
  return {
    name,
    image: IMAGE,
    memory: 32,
    stopTimeout: 2,
    entryPoint: ['/bin/sh', '-c'],
    command: [script],
    ...more,
  };
}

// Shell that runs until it is told to stop, and then exits 0 at once.
export const RUN_UNTIL_STOPPED = 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done';

// A gpu-worker with a share of `memoryMib`; `args` are the worker's.
export function sharingContainer(name, memoryMib, args) {
  return {
    name,
    image: IMAGE,
    memory: 64,
    stopTimeout: 5,
    command: args,
    resourceRequirements: [{type: 'GPU', sharingStrategy: {nvidiaMps: {memory: memoryMib}}}],
  };
}

export function wholeGpuContainer(name, count, args) {
  return {
    name,
    image: IMAGE,
    memory: 64,
    stopTimeout: 5,
    command: args,
    resourceRequirements: [{type: 'GPU', value: String(count)}],
  };
}

// networkMode none: nothing here needs a network, and not every engine has a bridge.
export function definition(family, ...containerDefinitions) {
  return {family, networkMode: 'none', containerDefinitions};
}
