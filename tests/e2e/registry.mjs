// An image registry (Debian's docker-registry) beside the tests' engine: on loopback, in the engine's
// network namespace, because a private engine reaches no other network.
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import {IMAGE, run, waitFor} from './harness.mjs';

// user "tester", password "secret"; made with htpasswd -B.
const HTPASSWD = 'tester:$2b$04$489.kfq6Vu0PFmKxMXyzMeZBV3b1egeVHCD40hReV/sA0zrrSkGqy\n';
export const CREDENTIALS = {auth: Buffer.from('tester:secret').toString('base64')};

let nextPort = 5710;

export class Registry {
  // `password`: pulls need the credentials above.
  static async start(t, engine, {password = false} = {}) {
    const registry = new Registry(engine, nextPort++, password);
    t.after(() => registry.#destroy());
    await registry.up();
    return registry;
  }

  #child;

  constructor(engine, port, password) {
    this.engine = engine;
    this.name = `127.0.0.1:${port}`;  // loopback needs no TLS
    this.folder = fs.mkdtempSync('/tmp/ct-registry-');
    const pidFile = path.join(path.dirname(engine.host.replace('unix://', '')), 'docker.pid');
    const pid = fs.existsSync(pidFile) ? fs.readFileSync(pidFile, 'utf8').trim() : undefined;
    this.enter = pid === undefined ? [] : ['nsenter', `--net=/proc/${pid}/ns/net`];
    const auth = password ? {htpasswd: {realm: 'test', path: path.join(this.folder, 'htpasswd')}} : undefined;
    if (password) fs.writeFileSync(path.join(this.folder, 'htpasswd'), HTPASSWD);
    fs.writeFileSync(path.join(this.folder, 'config.yml'), JSON.stringify({
      version: '0.1',
      storage: {filesystem: {rootdirectory: path.join(this.folder, 'data')}, delete: {enabled: true}},
      http: {addr: this.name},
      ...(auth && {auth}),
    }));
  }

  #command(...args) {
    const [program, ...rest] = [...this.enter, ...args];
    return [program, rest];
  }

  async up() {
    if (this.enter.length > 0) run(...this.#command('busybox', 'ip', 'link', 'set', 'lo', 'up'));
    const log = fs.openSync(path.join(this.folder, 'log'), 'a');
    const [program, args] = this.#command('docker-registry', 'serve', path.join(this.folder, 'config.yml'));
    this.#child = spawn(program, args, {stdio: ['ignore', log, log]});
    fs.closeSync(log);
    await waitFor('the registry listens', () => {
      const [nc, ncArgs] = this.#command('busybox', 'nc', ...this.name.split(':'));
      return run(nc, ncArgs, {mayFail: true}).status === 0;
    });
  }

  async down() {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
  }

  // An image of its own content in the registry, and no longer on the engine; its reference.
  push(repository, marker, {auth} = {}) {
    const reference = `${this.name}/${repository}`;
    const {docker} = this.#bound();
    // One more layer, so that each marker gives another image.
    const id = docker(['create', '--entrypoint', '/bin/sh', IMAGE, '-c', 'true']).stdout.trim();
    docker(['commit', '--change', `LABEL marker=${marker}`, '--change', 'ENTRYPOINT []', id, reference]);
    docker(['rm', id]);
    if (auth) docker(['login', '--username', 'tester', '--password', 'secret', this.name]);
    docker(['push', reference]);
    if (auth) docker(['logout', this.name]);
    const digest = /sha256:[0-9a-f]{64}/.exec(
        docker(['image', 'inspect', '--format', '{{json .RepoDigests}}', reference]).stdout)[0];
    docker(['rmi', '--force', reference]);
    return {reference, digest};
  }

  // docker(1) with a configuration of its own.
  #bound() {
    const env = {DOCKER_CONFIG: path.join(this.folder, 'docker')};
    return {docker: (args) => run('docker', args, {env: {...env, DOCKER_HOST: this.engine.host}})};
  }

  #destroy() {
    this.#child?.kill('SIGKILL');
    fs.rmSync(this.folder, {recursive: true, force: true});
  }
}
