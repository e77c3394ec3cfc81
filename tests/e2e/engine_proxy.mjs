// A unix socket between cotenant and the engine, on which the engine can be made to look away, silent
// or broken, while it and its containers go on undisturbed.
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';

export class EngineProxy {
  #server;
  #sockets = new Set();
  #mode = 'pass';
  requests = 0;  // connections, that is

  static async start(t, engine) {
    const proxy = new EngineProxy(engine);
    t.after(() => proxy.#destroy());
    await proxy.#listen();
    return proxy;
  }

  constructor(engine) {
    this.target = engine.host.replace('unix://', '');
    this.folder = fs.mkdtempSync('/tmp/ct-proxy-');
    this.socket = path.join(this.folder, 'engine.sock');
    this.host = `unix://${this.socket}`;
  }

  async #listen() {
    this.#server = net.createServer((client) => this.#serve(client));
    await new Promise((resolve, reject) => this.#server.once('error', reject).listen(this.socket, resolve));
  }

  #serve(client) {
    ++this.requests;
    this.#sockets.add(client);
    client.on('close', () => this.#sockets.delete(client));
    client.on('error', () => {});
    if (this.#mode === 'hang') return;
    if (this.#mode === 'garbage') {
      client.once('data', () => client.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[{"Id":7,'));
      return;
    }
    if (this.#mode === 'error') {
      client.once('data', () => client.end(
          'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 21\r\n\r\n{"message":"no disk"}'));
      return;
    }
    const engine = net.connect(this.target);
    this.#sockets.add(engine);
    engine.on('close', () => {
      this.#sockets.delete(engine);
      client.destroy();
    });
    engine.on('error', () => client.destroy());
    client.on('close', () => engine.destroy());
    client.pipe(engine).pipe(client);
  }

  // pass; away (nobody listens); hang (no answer); garbage, error (bad answers). Connections that are
  // open break.
  async set(mode) {
    this.#mode = mode;
    const listening = this.#server.listening;
    if (mode === 'away' && listening) {
      const closed = new Promise((resolve) => this.#server.close(resolve));
      for (const socket of this.#sockets) socket.destroy();
      await closed;
      return;
    }
    for (const socket of this.#sockets) socket.destroy();
    if (mode !== 'away' && !listening) await this.#listen();
  }

  #destroy() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    fs.rmSync(this.folder, {recursive: true, force: true});
  }
}
