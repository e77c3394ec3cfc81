// The members of task definitions beside GPUs, seen from inside real containers.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {before, test} from 'node:test';

import {Cotenant, RUN_UNTIL_STOPPED, definition, shellContainer, waitFor} from './harness.mjs';

let cotenant;
let folder;  // of the host, mounted into containers

before(async () => {
  cotenant = await Cotenant.start();
  folder = path.join(cotenant.folder, 'host');
  fs.mkdirSync(folder, {mode: 0o755});
});

const bridge = (family, ...containers) => ({...definition(family, ...containers), networkMode: 'bridge'});

// Runs it to its end and gives its output as name -> value of its lines `name=value`.
async function report(taskDefinition, container = 'main') {
  const arn = await cotenant.runOne(await cotenant.register(taskDefinition));
  const task = await cotenant.waitForTask(arn, 'STOPPED');
  const {runtimeId, exitCode, reason} = task.containers.find(({name}) => name === container);
  assert.equal(exitCode, 0, reason);
  return Object.fromEntries(cotenant.engine.logs(runtimeId).map((line) => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)];
  }));
}

test('storage, user, limits, names and kernel settings arrive in the container', async () => {
  fs.writeFileSync(path.join(folder, 'hello'), 'from the host\n');
  fs.writeFileSync(path.join(folder, 'app.env'), '# a comment\nFROM_FILE=a b\nWINNER=file\n');
  const script = `
    echo user=$(busybox id -u):$(busybox id -g); echo host=$(busybox hostname); echo here=$(busybox pwd)
    echo files=$(ulimit -Sn)/$(ulimit -Hn); echo first=$(cat /proc/1/comm)
    echo shm=$(busybox df -k /dev/shm | busybox awk 'END{print $2}')
    echo scratch=$(busybox awk '$2=="/scratch"{print $3" "$4}' /proc/mounts)
    echo x 2>/dev/null >/x && echo root=writable || echo root=read-only
    echo hello=$(cat /host/hello); echo x 2>/dev/null >/host/x && echo host_is=writable || echo host_is=read-only
    echo file=$FROM_FILE; echo winner=$WINNER
    echo bounding=$(busybox awk '/CapBnd/{print $2}' /proc/self/status)
    echo no_new=$(busybox awk '/NoNewPrivs/{print $2}' /proc/self/status)
    echo queue=$(cat /proc/sys/kernel/msgmax); echo zero=$(busybox head -c 2 /dev/nothing | busybox wc -c)
    exit 0`;
  const said = await report({
    ...definition('settings', shellContainer('main', script, {
      user: '1234:2345', hostname: 'tenant', workingDirectory: '/scratch', readonlyRootFilesystem: true,
      ulimits: [{name: 'nofile', softLimit: 100, hardLimit: 200}],
      mountPoints: [{sourceVolume: 'host', containerPath: '/host', readOnly: true}],
      environment: [{name: 'WINNER', value: 'definition'}],
      environmentFiles: [{type: 's3', value: path.join(folder, 'app.env')}],
      dockerSecurityOptions: ['no-new-privileges'],
      systemControls: [{namespace: 'kernel.msgmax', value: '4096'}],
      linuxParameters: {
        initProcessEnabled: true, sharedMemorySize: 3,
        tmpfs: [{containerPath: '/scratch', size: 2, mountOptions: ['noexec', 'mode=1777']}],
        capabilities: {drop: ['ALL']},
        devices: [{hostPath: '/dev/zero', containerPath: '/dev/nothing', permissions: ['read']}],
      },
    })),
    volumes: [{name: 'host', host: {sourcePath: folder}}],
  });
  const {first, scratch, ...rest} = said;
  assert.deepEqual(rest, {
    user: '1234:2345', host: 'tenant', here: '/scratch', files: '100/200', shm: '3072', root: 'read-only',
    hello: 'from the host', host_is: 'read-only', file: 'a b', winner: 'definition',
    bounding: '0000000000000000', no_new: '1', queue: '4096', zero: '2',
  });
  assert.match(first, /init|tini/, 'the init process is the first');
  assert.match(scratch, /^tmpfs .*noexec.*size=2048k/);
});

test('on a bridge: names, links and the ports that the engine chooses', async (t) => {
  if (!(await hasBridge())) return t.skip('this engine has no bridge');
  const family = await cotenant.register(bridge(
      'network',
      shellContainer('web', `cat /etc/hosts; cat /etc/resolv.conf; ${RUN_UNTIL_STOPPED}`, {
        links: ['db:database'], portMappings: [{containerPort: 80}, {containerPort: 81, hostPort: 28081}],
        extraHosts: [{hostname: 'registry', ipAddress: '10.9.8.7'}],
        dnsServers: ['10.9.8.6'], dnsSearchDomains: ['example.org'],
      }),
      shellContainer('db', RUN_UNTIL_STOPPED)));
  const arn = await cotenant.runOne(family);
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  const web = task.containers.find(({name}) => name === 'web');
  await cotenant.waitForLog(web.runtimeId, /10\.9\.8\.7\s+registry/);
  await cotenant.waitForLog(web.runtimeId, /\sdatabase\s/);
  await cotenant.waitForLog(web.runtimeId, /nameserver 10\.9\.8\.6/);
  await cotenant.waitForLog(web.runtimeId, /search example\.org/);

  const bindings = await waitFor('the ports are told', async () => {
    const now = (await cotenant.task(arn)).containers.find(({name}) => name === 'web').networkBindings;
    return now.length > 0 && now;
  });
  const engine = cotenant.engine.inspect(web.runtimeId).NetworkSettings.Ports;
  const chosen = bindings.find(({containerPort}) => containerPort === 80);
  assert.equal(String(chosen.hostPort), engine['80/tcp'][0].HostPort);
  assert.equal(bindings.find(({containerPort}) => containerPort === 81).hostPort, 28081);

  const taken = (await cotenant.instance()).remainingResources.find(({name}) => name === 'PORTS').stringSetValue;
  assert.ok(taken.includes('28081') && taken.includes(String(chosen.hostPort)), `PORTS are ${taken}`);
  const {failures} = await cotenant.call('RunTask', {taskDefinition: family});
  assert.equal(failures[0].reason, 'RESOURCE:PORTS');
  assert.match(failures[0].detail, /port 28081\/tcp; on instance \w+ it is held by task/);

  await cotenant.stopAndWait(arn);
  await cotenant.stopAndWait(await cotenant.runOne(family));
});

async function hasBridge() {
  return cotenant.engine.docker(['network', 'ls', '--format', '{{.Name}}']).stdout.split('\n').includes('bridge');
}

test('dependsOn: an init container, a healthy database, and the reverse order at the end', async () => {
  const order = (name) => new Date(cotenant.engine.inspect(ids.get(name)).State.StartedAt);
  const end = (name) => new Date(cotenant.engine.inspect(ids.get(name)).State.FinishedAt);
  const mountPoints = [{sourceVolume: 'shared', containerPath: '/shared'}];
  const family = await cotenant.register({
    ...definition(
        'ordered',
        shellContainer('app', `cat /shared/made; ${RUN_UNTIL_STOPPED}`, {
          mountPoints,
          dependsOn: [{containerName: 'init', condition: 'SUCCESS'}, {containerName: 'db', condition: 'HEALTHY'}],
        }),
        shellContainer('db', `sleep 1; echo x >/tmp/ready; ${RUN_UNTIL_STOPPED}`, {
          dependsOn: [{containerName: 'init', condition: 'COMPLETE'}],
          healthCheck: {command: ['CMD-SHELL', 'test -f /tmp/ready'], interval: 5, timeout: 2},
        }),
        shellContainer('init', 'sleep 1; echo made by init >/shared/made', {essential: false, mountPoints})),
    volumes: [{name: 'shared'}],
  });
  const arn = await cotenant.runOne(family);
  const task = await cotenant.waitForTask(arn, 'RUNNING');
  const ids = await cotenant.runtimeIds(arn);
  await cotenant.waitForLog(ids.get('app'), /^made by init$/);
  assert.equal(task.containers.find(({name}) => name === 'init').exitCode, 0);
  assert.equal(task.containers.find(({name}) => name === 'db').healthStatus, 'HEALTHY');
  assert.ok(end('init') <= order('db') && order('db') < order('app'));

  // The volume is the task's own.
  const [{Name: volume}] = cotenant.engine.inspect(ids.get('app')).Mounts;
  assert.match(volume, /^cotenant-[0-9a-f]{32}-shared$/);

  await cotenant.stopAndWait(arn);
  assert.ok(end('app') <= end('db'), 'the database outlives its client');
});

test('an init container that fails ends its task, and says so', async () => {
  const arn = await cotenant.runOne(await cotenant.register(definition(
      'init-fails',
      shellContainer('app', RUN_UNTIL_STOPPED, {dependsOn: [{containerName: 'init', condition: 'SUCCESS'}]}),
      shellContainer('init', 'exit 4', {essential: false}))));
  const task = await cotenant.waitForTask(arn, 'STOPPED');
  const app = task.containers.find(({name}) => name === 'app');
  assert.equal(app.reason, "dependsOn: container 'init' can no longer reach SUCCESS: it exited with code 4");
  assert.equal(app.exitCode, undefined, 'it never ran');
});

test('a container that takes more than its memory is told apart', async () => {
  const arn = await cotenant.runOne(await cotenant.register(definition(
      'too-much', shellContainer('hungry', 'exec busybox dd if=/dev/zero of=/dev/null bs=128M count=4', {
        memory: 16, linuxParameters: {maxSwap: 0},
      }))));
  const task = await cotenant.waitForTask(arn, 'STOPPED');
  assert.equal(task.containers[0].reason, 'OutOfMemoryError: Container killed due to memory usage');
  assert.equal(task.containers[0].exitCode, 137);
  assert.equal(task.stopCode, 'EssentialContainerExited');
});

test('a host port that the engine cannot give ends the task with the engine\'s words', async (t) => {
  if (!(await hasBridge())) return t.skip('this engine has no bridge');
  // Taken behind cotenant's back.
  const name = `squatter-${process.pid}`;
  cotenant.engine.docker(['run', '--detach', '--name', name, '--publish', '28099:80', '--entrypoint', '/bin/sleep',
                          'cotenant/gpu-worker:latest', '600']);
  t.after(() => cotenant.engine.docker(['rm', '--force', name]));
  const arn = await cotenant.runOne(await cotenant.register(bridge(
      'squatted', shellContainer('web', RUN_UNTIL_STOPPED, {portMappings: [{containerPort: 80, hostPort: 28099}]}))));
  const task = await cotenant.waitForTask(arn, 'STOPPED');
  assert.equal(task.stopCode, 'TaskFailedToStart');
  assert.match(task.containers[0].reason, /^CannotStartContainerError: .*28099.*already allocated/s);
});

test('awsvpc: the containers of a task have one network, and may see each other\'s processes', async (t) => {
  if (!(await hasBridge())) return t.skip('this engine has no bridge');
  const serve = 'busybox httpd -f -p 127.0.0.1:8000 -h /etc & ' + RUN_UNTIL_STOPPED;
  const family = await cotenant.register({
    ...definition(
        'own-network',
        shellContainer('web', serve, {portMappings: [{containerPort: 8000}]}),
        shellContainer('client', `
          until busybox wget -q -O - http://127.0.0.1:8000/passwd; do sleep 1; done
          busybox ip -4 addr show eth0; echo first=$(cat /proc/1/comm); ${RUN_UNTIL_STOPPED}`, {
          dependsOn: [{containerName: 'web', condition: 'START'}],
        })),
    networkMode: 'awsvpc', pidMode: 'task',
  });
  const reply = await cotenant.call('RunTask', {
    taskDefinition: family, networkConfiguration: {awsvpcConfiguration: {subnets: ['subnet-0']}},
  });
  const arn = reply.tasks[0].taskArn;
  await cotenant.waitForTask(arn, 'RUNNING');
  const task = await waitFor('the address is told', async () => {
    const now = await cotenant.task(arn);
    return now.containers.every(({networkInterfaces}) => networkInterfaces.length === 1) && now;
  });
  assert.equal(task.containers.length, 2, 'the pause container is not shown');
  const addresses = new Set(task.containers.map(({networkInterfaces}) => networkInterfaces[0].privateIpv4Address));
  assert.equal(addresses.size, 1);
  const [address] = addresses;
  const client = task.containers.find(({name}) => name === 'client');
  await cotenant.waitForLog(client.runtimeId, /^root:x:0:0/);
  await cotenant.waitForLog(client.runtimeId, new RegExp(`inet ${address.replaceAll('.', '\\.')}/`));
  await cotenant.waitForLog(client.runtimeId, /^first=pause$/);
  assert.equal(task.attachments[0].details[0].value, address);

  const label = cotenant.engine.inspect(client.runtimeId).Config.Labels['cotenant.task'];
  const running = () => cotenant.engine.docker(
      ['ps', '--quiet', '--filter', `label=cotenant.task=${label}`]).stdout.split('\n').filter(Boolean).length;
  assert.equal(running(), 3);
  await cotenant.stopAndWait(arn);
  await waitFor('the pause container is gone too', () => running() === 0);
});
