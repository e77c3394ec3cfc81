// Who may call, as clients see it: the AWS SDK, curl, the AWS CLI where it is there, and agents.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {before, test} from 'node:test';

import {ECSClient, ListClustersCommand} from '@aws-sdk/client-ecs';

import {BINARY, Cotenant, Daemon, RUN_UNTIL_STOPPED, definition, run, shellContainer, waitFor} from './harness.mjs';

let cotenant;
let keys;  // what the credentials file says

function readKeys() {
  const text = fs.readFileSync(cotenant.credentialsFile, 'utf8');
  const value = (name) => new RegExp(`^${name} = (\\S+)$`, 'm').exec(text)[1];
  return {accessKeyId: value('aws_access_key_id'), secretAccessKey: value('aws_secret_access_key')};
}

before(async () => {
  cotenant = await Cotenant.start({split: true});
  keys = readKeys();
});

// The SDK's exception, or undefined when it may call.
async function listClusters(more) {
  const client = new ECSClient(
      {endpoint: cotenant.endpoint, region: 'us-east-1', credentials: {...keys}, maxAttempts: 1, ...more});
  try {
    const {clusterArns} = await client.send(new ListClustersCommand({}));
    assert.ok(clusterArns.length > 0);
    return undefined;
  } catch (error) {
    if (error.$metadata?.httpStatusCode === undefined) throw error;
    return error;
  } finally {
    client.destroy();
  }
}

test('the SDK with the file\'s keys may call; with others it gets AWS\'s exceptions', async () => {
  assert.equal(fs.statSync(cotenant.credentialsFile).mode & 0o777, 0o600);
  assert.equal(await listClusters({}), undefined);
  const rows = [
    [{credentials: {...keys, secretAccessKey: 'wrong'}}, 'InvalidSignatureException', /does not match/],
    [{credentials: {...keys, accessKeyId: 'AKIDSTRANGER'}}, 'UnrecognizedClientException', /security token/],
    [{credentials: {...keys, sessionToken: 'token'}}, 'UnrecognizedClientException', /security token/],
    [{region: 'eu-west-1'}, 'InvalidSignatureException', /valid region: 'us-east-1'/],
    [{systemClockOffset: 600_000}, 'InvalidSignatureException', /Signature not yet current/],
    [{systemClockOffset: -600_000}, 'InvalidSignatureException', /Signature expired/],
  ];
  for (const [more, name, message] of rows) {
    const error = await listClusters(more);
    assert.equal(error?.name, name, `${JSON.stringify(more)}: ${error?.message}`);
    assert.match(error.message, message);
    assert.equal(error.$metadata.httpStatusCode, 400);
  }
  // The SDK sets its clock by the refusal's Date: the next call is good.
  const client = new ECSClient({
    endpoint: cotenant.endpoint, region: 'us-east-1', credentials: {...keys}, maxAttempts: 1,
    systemClockOffset: 600_000,
  });
  await assert.rejects(client.send(new ListClustersCommand({})), /Signature not yet current/);
  assert.equal((await client.send(new ListClustersCommand({}))).clusterArns.length, 1);
  client.destroy();
});

test('unsigned calls are refused, on TCP but not on the unix socket', async () => {
  const reply = await fetch(cotenant.endpoint, {
    method: 'POST',
    headers: {'X-Amz-Target': 'AmazonEC2ContainerServiceV20141113.ListClusters'},
    body: '{}',
  });
  assert.equal(reply.status, 400);
  assert.equal((await reply.json()).__type, 'MissingAuthenticationTokenException');
  const client = ['ps', '--all', '--endpoint', cotenant.endpoint];
  const unsigned = run(BINARY, client, {mayFail: true, env: {AWS_SHARED_CREDENTIALS_FILE: '', HOME: '/'}});
  assert.equal(unsigned.status, 1);
  assert.match(unsigned.stderr, /MissingAuthenticationTokenException.*--credentials/);
  run(BINARY, [...client, '--credentials', cotenant.credentialsFile]);
  run(BINARY, ['ps', '--data-dir', cotenant.dataDir]);  // finds the socket by itself
  assert.equal(fs.statSync(cotenant.apiSocket).mode & 0o777, 0o600);
});

const has = (program, args) => spawnSync(program, args).status === 0;

test('curl --aws-sigv4 may call', {skip: !has('curl', ['--version'])}, () => {
  const {stdout} = run('curl', [
    '--silent', '--show-error', '--fail-with-body', '--aws-sigv4', 'aws:amz:us-east-1:ecs',
    '--user', `${keys.accessKeyId}:${keys.secretAccessKey}`,
    '--header', 'X-Amz-Target: AmazonEC2ContainerServiceV20141113.ListClusters',
    '--header', 'Content-Type: application/x-amz-json-1.1', '--data', '{}', cotenant.endpoint,
  ]);
  assert.equal(JSON.parse(stdout).clusterArns.length, 1);
});

test('the AWS CLI may call, by AWS_SHARED_CREDENTIALS_FILE alone', {skip: !has('aws', ['--version'])}, () => {
  const {stdout} = run('aws', ['ecs', 'list-clusters', '--output', 'json', '--endpoint-url', cotenant.endpoint], {
    timeoutMs: 180_000,
    env: {
      AWS_SHARED_CREDENTIALS_FILE: cotenant.credentialsFile,
      AWS_CONFIG_FILE: '/dev/null', AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_EC2_METADATA_DISABLED: 'true',
    },
  });
  assert.equal(JSON.parse(stdout).clusterArns.length, 1);
});

// An agent with a data folder of its own; what it says of its connection.
async function agentLog(name, args, prepare = () => {}) {
  const dataDir = path.join(cotenant.folder, name);
  fs.mkdirSync(dataDir, {mode: 0o700});
  prepare(dataDir);
  const agent = new Daemon(
      ['agent', '--server', cotenant.endpoint, '--data-dir', dataDir, '--run-dir', `${dataDir}/run`,
       '--docker-host', cotenant.engine.host, ...args],
      `${dataDir}.log`);
  agent.spawn();
  try {
    return await waitFor(`agent ${name} is told why`, () => /agent: no connection.*|connected to.*/.exec(agent.tail())?.[0]);
  } finally {
    await agent.end('SIGTERM');
    run(BINARY, ['down', '--data-dir', dataDir], {mayFail: true});
  }
}

test('agents: no token, a revoked one, and one that claims another\'s instance', async () => {
  const instances = async () => (await cotenant.call('ListContainerInstances')).containerInstanceArns.length;
  assert.match(await agentLog('none', []), /403.*needs a join token/);

  const token = (args) => run(BINARY, ['token', ...args, '--data-dir', cotenant.dataDir]);
  const file = path.join(cotenant.folder, 'second-token');
  fs.writeFileSync(file, token(['create', '--expires-in', '600']).stdout, {mode: 0o600});
  const id = /cotenant-join\.(\w+)\./.exec(fs.readFileSync(file, 'utf8'))[1];
  assert.match(token(['list']).stdout, new RegExp(id));

  const forge = (dataDir) => fs.copyFileSync(
      path.join(cotenant.agentDataDir, 'agent.json'), path.join(dataDir, 'agent.json'));
  assert.match(await agentLog('forged', ['--join-token-file', file], forge), /403.*joined with another key/);

  token(['revoke', id]);
  assert.match(await agentLog('revoked', ['--join-token-file', file]), /403.*unknown or was revoked/);
  assert.equal(await instances(), 1);
  assert.equal((await cotenant.instance()).agentConnected, true, 'the true agent was not disturbed');
});

test('keys and agents survive a restart; a file that others may read is refused', async () => {
  await cotenant.server.end('SIGKILL');
  fs.chmodSync(cotenant.credentialsFile, 0o644);
  const refused = run(BINARY, cotenant.server.args, {mayFail: true});
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /credentials: others may read or write it .*chmod 600/);
  fs.chmodSync(cotenant.credentialsFile, 0o600);
  await cotenant.restart(cotenant.server);
  assert.deepEqual(readKeys(), keys);
  assert.equal(await listClusters({}), undefined);
});

test('off loopback the server wants signatures and TLS', () => {
  const listen = (...args) => run(BINARY, [
    'server', '--listen', '0.0.0.0:0', '--data-dir', path.join(cotenant.folder, 'off'),
    '--run-dir', path.join(cotenant.folder, 'off-run'), ...args], {mayFail: true});
  for (const [args, want] of [
    [[], /--tls-certificate/],
    [['--auth', 'off'], /--auth off is for loopback only/],
    [['--auth', 'off', '--allow-plain-http'], /--auth off is for loopback only/],
    [['--tls-certificate', '/nowhere', '--tls-key', '/nowhere'], /TLS certificate \/nowhere/],
  ]) {
    const {status, stderr} = listen(...args);
    assert.equal(status, 1, stderr);
    assert.match(stderr, want);
  }
  run(BINARY, ['down', '--data-dir', path.join(cotenant.folder, 'off')], {mayFail: true});
});

test('API and agents over TLS', {skip: !has('openssl', ['version'])}, async (t) => {
  const at = (name) => path.join(cotenant.folder, `tls-${name}`);
  run('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
                  '-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', at('key'), '-out', at('cert')]);
  const folders = (name) => ['--data-dir', at(name), '--run-dir', at(`${name}-run`)];
  const daemons = [];
  const start = (name, args) => {
    const daemon = new Daemon([name, ...folders(name), ...args], at(`${name}.log`));
    daemons.push(daemon);
    daemon.spawn();
    return daemon;
  };
  t.after(() => {
    for (const daemon of daemons) daemon.killNow();
    for (const name of ['agent', 'server']) run(BINARY, ['down', '--data-dir', at(name)], {timeoutMs: 120_000});
  });
  const server = start('server', ['--listen', '127.0.0.1:0', '--tls-certificate', at('cert'), '--tls-key', at('key')]);
  const endpoint = await waitFor('the server says where it listens',
      () => /is ready on (https:\/\/\S+)/.exec(server.tail())?.[1]);
  fs.writeFileSync(at('token'), run(BINARY, ['token', 'create', '--data-dir', at('server')]).stdout, {mode: 0o600});
  start('agent', ['--server', endpoint, '--ca-certificate', at('cert'), '--join-token-file', at('token'),
                  '--simulate-gpus', '1xL4', '--docker-host', cotenant.engine.host]);
  const client = ['--endpoint', endpoint, '--credentials', path.join(at('server'), 'credentials')];
  await waitFor('the agent has joined', () => run(
      BINARY, ['gpus', ...client, '--ca-certificate', at('cert')]).stdout.includes('NVIDIA L4'));
  const distrusted = run(BINARY, ['gpus', ...client], {mayFail: true});
  assert.equal(distrusted.status, 3);
  assert.match(distrusted.stderr, /certificate of 127\.0\.0\.1 is not accepted/);
  await assert.rejects(fetch(endpoint.replace('https', 'http')));

  // Streams: the client's connection and the agent's, both over TLS.
  fs.writeFileSync(at('task.json'), JSON.stringify(definition('secured', shellContainer('main', `echo printed; ${RUN_UNTIL_STOPPED}`))));
  const trusting = [...client, '--ca-certificate', at('cert')];
  const ran = run(BINARY, ['run', at('task.json'), '--wait', ...trusting]).stdout;
  const [, task] = /^([0-9a-f]{12}) /m.exec(ran) ?? assert.fail(ran);
  const {stdout} = await waitFor('its logs', () => {
    const logs = run(BINARY, ['logs', task, ...trusting]);
    return logs.stdout !== '' && logs;
  });
  assert.equal(stdout, 'printed\n');
  const exec = run(BINARY, ['exec', '-i', ...trusting, task, 'main', '--', 'cat'], {input: 'x'.repeat(300_000)});
  assert.equal(exec.stdout.length, 300_000);
  run(BINARY, ['stop', task, '--wait', ...trusting]);
});
