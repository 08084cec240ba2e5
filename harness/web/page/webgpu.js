// The visitor's own GPU: runs a kernel of the page's module through WebGPU, with stress, and counts outcomes.

// Returns an adapter and its device, or throws a sentence about what is missing.
export async function openDevice() {
  if (!navigator.gpu) throw new Error("This browser has no WebGPU here: use a newer one, over https or from localhost.");
  const adapter = await navigator.gpu.requestAdapter();
  if (adapter === null) throw new Error("This browser offers no GPU adapter.");
  const { vendor, architecture, device: name, description } = adapter.info ?? {};
  return {
    device: await adapter.requestDevice(),
    name: [vendor, architecture, name, description].filter(Boolean).join(" ") || "unnamed adapter",
  };
}

// The word of results that nothing has written yet.
const UNWRITTEN = 0xFFFFFFFF;

const BUFFERS = ["storage", "storage", "storage", "storage", "uniform"];

// Returns a function that chooses numbers below a bound (xorshift): a seed decides all choices of a run.
function generator(seed) {
  let state = (seed ^ 0x9E3779B9) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return state % below;
  };
}

// Runs `dispatches` dispatches of a kernel; `each` gets the counts by outcome after every one and returns false to end.
export async function run(device, kernel, workgroups, dispatches, seed, each) {
  const random = generator(seed);
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: kernel.source });
  const layout = device.createBindGroupLayout({
    entries: BUFFERS.map((type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })),
  });
  const pipeline = (entryPoint) => device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }), compute: { module, entryPoint },
  });
  const [test, collect] = [await pipeline("test"), await pipeline("collect")];
  const instances = workgroups * kernel.workgroup_size;
  const columns = kernel.observables.length;
  const make = (size, usage) => device.createBuffer({ size: Math.max(16, size), usage });
  const storage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
  const [memory, plain] = [make(4 * instances * kernel.locations, storage), make(4 * instances * kernel.locations, storage)];
  const [results, scratch] = [make(4 * instances * columns, storage), make(4 * 1024, storage)];
  const parameters = make(16, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST);
  const read = make(4 * instances * columns, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
  const buffers = [memory, plain, results, scratch, parameters];
  const group = device.createBindGroup({
    layout, entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  const failure = await device.popErrorScope();
  if (failure) throw new Error(`WebGPU refuses the kernel: ${failure.message}`);
  const counts = new Map();
  for (let dispatch = 0; dispatch < dispatches; dispatch++) {
    // Factor, distance of the workgroups, odd shift of the lanes, and rounds of stress.
    device.queue.writeBuffer(parameters, 0, new Uint32Array([
      random(64), 1 + random(Math.max(1, Math.floor(workgroups / kernel.workgroups_of_instance) - 1)), 1 + 2 * random(32), random(64),
    ]));
    const commands = device.createCommandEncoder();
    for (const buffer of [memory, plain]) commands.clearBuffer(buffer);
    device.queue.writeBuffer(results, 0, new Uint32Array(instances * columns).fill(UNWRITTEN));
    const pass = commands.beginComputePass();
    for (const one of [test, collect]) {
      pass.setPipeline(one);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(workgroups);
    }
    pass.end();
    commands.copyBufferToBuffer(results, 0, read, 0, 4 * instances * columns);
    device.queue.submit([commands.finish()]);
    await read.mapAsync(GPUMapMode.READ);
    const values = new Uint32Array(read.getMappedRange());
    for (let at = 0; at < instances * columns; at += columns) {
      const key = values.subarray(at, at + columns).join(" ");
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    read.unmap();
    if (!each(counts, (dispatch + 1) * instances, dispatch + 1)) break;
  }
  for (const buffer of [...buffers, read]) buffer.destroy();
  return counts;
}

// Joins counts with the outcomes of a model: rows, a verdict in words, and true if the device broke the model.
//
// Instances with an unwritten result did not run, so they are no outcome, and beside them nothing is judged. An
// outcome that the model does not list is forbidden only if the list is complete.
export function judge(kernel, counts, line) {
  const missing = [...counts].filter(([key]) => key.split(" ").some((word) => Number(word) === UNWRITTEN));
  const notExecuted = missing.reduce((sum, [, count]) => sum + count, 0);
  const rows = line.outcomes.filter((outcome) => !outcome.filtered).map(({ state, allowed, weak }) => {
    const key = kernel.observables.map((name) => state[name] >>> 0).join(" ");
    return { state, allowed, weak, key, count: counts.get(key) ?? 0 };
  });
  const known = new Set([...rows, ...missing.map(([key]) => ({ key }))].map(({ key }) => key));
  for (const [key, count] of counts) {
    if (known.has(key)) continue;
    const values = key.split(" ").map(Number);
    const state = Object.fromEntries(kernel.observables.map((name, index) => [name, values[index]]));
    rows.push({ state, allowed: false, weak: true, key, count });
  }
  const forbidden = rows.filter(({ allowed, count }) => !allowed && count > 0).length;
  // Models without a race condition have no answer about races.
  const isComplete = (line.race ?? "free") === "free" && line.outcomes_listed !== false && !(line.cut > 0) && !line.no_execution;
  let verdict = "only allowed outcomes";
  if (line.race === "racy") verdict = "undefined: the test is racy, so nothing is judged";
  else if (notExecuted > 0) verdict = `inconclusive: ${notExecuted} instances wrote no result`;
  else if (!isComplete) verdict = "inconclusive: the model's list of outcomes is not complete";
  else if (forbidden > 0) verdict = `violates ${line.model} (forbidden outcomes: ${forbidden})`;
  return { rows, verdict, notExecuted, isViolation: verdict.startsWith("violates") };
}
