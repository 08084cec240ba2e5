// Runs the module: one request at a time, each answered by one message.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const module = WebAssembly.instantiateStreaming
  ? WebAssembly.instantiateStreaming(fetch("playground.wasm"), {}).catch(instantiate)
  : instantiate();

// Servers without the media type of WebAssembly need the slower way.
async function instantiate() {
  const answer = await fetch("playground.wasm");
  if (!answer.ok) throw new Error(`playground.wasm: ${answer.status} ${answer.statusText}`);
  return WebAssembly.instantiate(await answer.arrayBuffer(), {});
}

async function answer(request) {
  const { exports } = (await module).instance;
  const bytes = encoder.encode(JSON.stringify(request));
  const at = exports.request_address(bytes.length);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  // A call may grow the memory, which detaches older views.
  const length = exports.answer();
  const view = new Uint8Array(exports.memory.buffer, exports.answer_address(), length);
  return JSON.parse(decoder.decode(view));
}

addEventListener("message", async ({ data: { number, request } }) => {
  try {
    postMessage({ number, answer: await answer(request) });
  } catch (error) {
    postMessage({ number, failure: String(error.message ?? error) });
  }
});
