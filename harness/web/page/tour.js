// The tour: ten tests, each with a few sentences and one thing to try.

import { ask } from "./engine.js";
import { byId } from "./view.js";

export const STEPS = [
  ["mp/MP+plain", "A plain flag is no synchronization",
    "P0 writes data and sets a flag; P1 reads the flag and then the data. All accesses are plain. Nothing orders the two threads, so that both variables race and the outcome is undefined.",
    "Choose `explain` at the weak outcome, and read which accesses race."],
  ["mp/MP+rlx-rlx", "Atomics remove the race, not the weak outcome",
    "Relaxed atomics of device scope never race with each other. But P1 may still see the flag and not the data, because relaxed atomics order nothing else.",
    "Run the simulated GPU and wait until the weak outcome is counted."],
  ["mp/MP+rel-acq", "Release and acquire order the data",
    "The store of the flag releases, and the load of the flag acquires. If the load reads the flag, everything before the release happens before everything after the acquire.",
    "Choose the fault `release-does-not-drain-stores` and run until the verdict is `violates`."],
  ["mp/MP+rel-rlx", "Both sides have to synchronize",
    "A release without an acquire synchronizes with nothing. The weak outcome of message passing is back.",
    "Replace `ld.atom.dv.sc0 r0, f` by `ld.atom.acq.dv.sc0.semsc0 r0, f`."],
  ["mp/MP+rel-acq.wg", "A scope has to contain both threads",
    "Here the threads share a workgroup, and workgroup scope is enough. A scope names the set of invocations that take part in the synchronization.",
    "Change `wg 0` of P1 to `wg 1`: the threads are no longer in one scope instance."],
  ["mp/MP+fence-fence", "Barriers work like release and acquire",
    "A memory barrier before a relaxed store and one after a relaxed load synchronize as well. This is what `memoryBarrier` and atomics of GLSL compile to.",
    "Remove one of the two barriers, and compare the outcomes."],
  ["sb/SB+rlx-rlx", "Store buffering",
    "Each thread writes one variable and reads the other. Both may read the old value: stores wait in buffers while loads overtake them.",
    "Compare with the model `sc`: it forbids exactly this outcome."],
  ["sb/SB+relacq-relacq", "Release and acquire do not forbid store buffering",
    "Release orders what is before it, acquire what is after it. Neither orders a store before a later load, and Vulkan has no sequentially consistent atomics.",
    "Explain the weak outcome: its graph has no cycle in the order happens-before."],
  ["coherence/CoRR+rlx", "One variable has one order",
    "Even relaxed atomics agree on the order of the writes to one variable. A second read never sees an older value than the first.",
    "Make the two loads plain: coherence is lost together with freedom from races."],
  ["sb/SB+rmw-rmw", "Read-modify-writes order only their own variable",
    "An atomic read-modify-write reads the write directly before its own in the order of the variable; locks and counters rest on this. It orders nothing of other variables, so that store buffering stays.",
    "Change both variables to `x`, and see which outcomes are left."],
];

let step = 0;

// Wires the tour; `open` takes the text of a test.
export function startTour(open) {
  const show = async (next) => {
    step = Math.min(STEPS.length - 1, Math.max(0, next));
    const [id, title, words, attempt] = STEPS[step];
    byId("tour").hidden = false;
    byId("tour-title").textContent = `${step + 1} of ${STEPS.length}: ${title}`;
    byId("tour-words").textContent = words;
    byId("tour-try").textContent = `Try: ${attempt}`;
    byId("tour-back").disabled = step === 0;
    byId("tour-next").disabled = step === STEPS.length - 1;
    const answer = await ask({ request: "test", id });
    if (answer.answer === "test") open(answer.text);
  };
  byId("open-tour").addEventListener("click", () => show(0));
  byId("tour-back").addEventListener("click", () => show(step - 1));
  byId("tour-next").addEventListener("click", () => show(step + 1));
  byId("tour-end").addEventListener("click", () => { byId("tour").hidden = true; });
}
