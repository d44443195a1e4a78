// Perfetto's trace processor as its web page has it, outside of a browser: messages come on standard input and replies go
// to standard output, each behind its length in four bytes.
//
// `node engine.js FOLDER`, with the folder that holds `engine_bundle.js` and `trace_processor.wasm`.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const folder = process.argv[2];
const read = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));

// How a worker reads what it needs at once.
class XMLHttpRequest {
  open(_method, url) { this.url = url; }
  send() {
    const bytes = read(this.url);
    this.status = 200;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
}

// A worker's world and nothing of node's, by which the code would think itself elsewhere.
const world = {
  console: { log: () => {}, warn: () => {}, error: (...words) => process.stderr.write(words.join(' ') + '\n') },
  fetch: async (url) => new Response(read(url), { headers: { 'content-type': 'application/wasm' } }),
  location: { href: 'https://localhost/engine_bundle.js', origin: 'https://localhost', pathname: '/', search: '' },
  importScripts: () => {},
  XMLHttpRequest,
  WorkerGlobalScope: function () {},
  performance, setTimeout, clearTimeout, queueMicrotask, TextDecoder, TextEncoder, URL, Response, crypto,
  addEventListener: () => {},
};
world.self = world;
vm.createContext(world);
world.globalThis = world;
vm.runInContext(read('engine_bundle.js').toString(), world);
const Bytes = vm.runInContext('Uint8Array', world);

const port = {
  postMessage(data) {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(data.length);
    fs.writeSync(1, head);
    for (let sent = 0; sent < data.length; ) sent += fs.writeSync(1, data, sent);
  },
};
world.onmessage({ data: port });

let heard = Buffer.alloc(0);
let last = Promise.resolve();
process.stdin.on('data', (piece) => {
  heard = Buffer.concat([heard, piece]);
  while (heard.length >= 4 && heard.length >= 4 + heard.readUInt32LE(0)) {
    const length = heard.readUInt32LE(0);
    const message = new Bytes(heard.subarray(4, 4 + length));
    heard = heard.subarray(4 + length);
    last = last.then(() => port.onmessage({ data: message }));
  }
});
