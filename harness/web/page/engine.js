// The worker with the module: requests in sequence, a stop that ends the worker, and a new worker after it. A page
// of `vk-litmus serve` asks its server instead, which has no module.

let worker = null;
let next = 0;
const waiting = new Map();

export class Stopped extends Error {}

function start() {
  worker = new Worker("worker.js");
  worker.addEventListener("message", ({ data: { number, answer, failure } }) => {
    const request = waiting.get(number);
    waiting.delete(number);
    if (failure === undefined) {
      request?.resolve(answer);
    } else {
      // The state of the module after a trap is unknown.
      end(new Error(`the module failed: ${failure}`));
      request?.reject(new Error(`the module failed: ${failure}`));
    }
  });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    end(new Error(`the worker failed: ${event.message ?? "it did not load"}`));
  });
}

function end(reason) {
  worker?.terminate();
  worker = null;
  for (const { reject } of waiting.values()) reject(reason);
  waiting.clear();
}

let server = false;
const calls = new Set();

// Asks the server from now on.
export function useServer() { server = true; }

async function askServer(request) {
  const call = new AbortController();
  calls.add(call);
  try {
    const answer = await fetch("answer", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
      signal: call.signal,
    });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return await answer.json();
  } catch (error) {
    if (call.signal.aborted) throw new Stopped("stopped");
    throw error instanceof TypeError ? new Error("the server does not answer: start `vk-litmus serve` again") : error;
  } finally {
    calls.delete(call);
  }
}

// Returns the answer to a request.
export function ask(request) {
  if (server) return askServer(request);
  if (worker === null) start();
  const number = next++;
  return new Promise((resolve, reject) => {
    waiting.set(number, { resolve, reject });
    worker.postMessage({ number, request });
  });
}

// Ends all requests; the next one starts a new worker.
export function stop() {
  for (const call of calls) call.abort();
  if (waiting.size > 0) end(new Stopped("stopped"));
}
