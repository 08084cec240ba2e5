//! Random host programs with queue submissions.
//!
//! Dispatches on one or two queue families, one of them with two queues, with barriers, events, binary and
//! timeline semaphores. Host threads write before a submission, read after one, or signal.

use crate::generate::{ProgramFamily, RandomProgram, SplitMix64};

const BARRIER_SIDES: [&str; 14] = [
    "compute:shader_write",
    "compute:shader_write",
    "compute:shader_write.shader_read",
    "compute:shader_read",
    "compute:memory_write",
    "all:memory_write.memory_read",
    "compute",
    "all",
    "top",
    "bottom",
    "transfer",
    "vertex",
    "fragment:shader_write",
    "compute.transfer:memory_read",
];
const HOST_BARRIER_SIDES: [&str; 3] = ["host:host_read", "host:host_write", "host:host_read.host_write"];
const ACCESSES: [&str; 8] = [
    "st.sc0 x, {}",
    "st.sc0 x, {}",
    "ld.sc0 r{}, x",
    "ld.sc0 r{}, x",
    "ld.sc0 r{}, y",
    "st.sc0 y, {}",
    "st.atom.dv.sc0 x, {}",
    "ld.atom.dv.sc0 r{}, y",
];

/// Returns the program of a seed; draws again while the specification leaves the answer open.
pub fn generate_calls_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed ^ 0xCA11_CA11);
    loop {
        let (text, agents) = draw_program(&mut random, seed);
        if litmus::parse(&text, "random.litmus").is_ok() {
            return RandomProgram { family: ProgramFamily::Calls(agents), text, bound: 1 };
        }
    }
}

fn draw_program(random: &mut SplitMix64, seed: u64) -> (String, usize) {
    let agents = random.pick(&[2, 2, 3]);
    let host = random.chance(35);
    let mut number = 0;
    let mut access = |random: &mut SplitMix64, host: bool| {
        number += 1;
        let access =
            if host { random.pick(&["st.sc0 x, {}", "ld.sc0 r{}, x"]) } else { random.pick(&ACCESSES) };
        access.replace("{}", &number.to_string())
    };
    let mut columns: Vec<Vec<String>> = Vec::new();
    let mut signals = 0;
    // A timeline that counts from queue to queue, or a binary semaphore; events that are set, by their queue.
    let uses_timeline = random.chance(40);
    let mut events: Vec<&str> = Vec::new();
    for agent in 0..agents {
        let place = random.pick(&["qf 0", "qf 0", "qf 0, q 1", "qf 1"]);
        let mut column = vec![format!("P{agent}@sg 0, wg {agent}, {place}")];
        let wait = agent > 0 && signals > 0 && random.chance(60);
        if wait && uses_timeline {
            column.push(format!("wait t {signals}"));
        } else if wait {
            signals -= 1;
            column.push(format!("wait s{signals}"));
        }
        // An event is awaited once, on the queue that sets it.
        if let Some(event) = events.iter().position(|queue| *queue == place)
            && !wait
            && random.chance(70)
        {
            column.push(format!("await e{event}"));
            // No queue has an empty name, so the event is spent.
            if let Some(queue) = events.get_mut(event) {
                *queue = "";
            }
        }
        if !wait && random.chance(60) {
            column.push(format!(
                "barrier {} -> {}",
                random.pick(&BARRIER_SIDES),
                random.pick(&BARRIER_SIDES)
            ));
        }
        for _ in 0..1 + random.below(2) {
            column.push(access(random, false));
        }
        if random.chance(35) {
            column.push(format!(
                "barrier {} -> {}",
                random.pick(&BARRIER_SIDES),
                random.pick(&BARRIER_SIDES)
            ));
        }
        if host && random.chance(60) {
            column.push(format!("barrier compute:shader_write -> {}", random.pick(&HOST_BARRIER_SIDES)));
        }
        if random.chance(30) && agent + 1 < agents {
            let (source, target) = (random.pick(&BARRIER_SIDES), random.pick(&BARRIER_SIDES));
            column.push(format!("set e{} {source} -> {target}", events.len()));
            events.push(place);
        }
        // A timeline only increases: the next signal comes from an agent that waited for its predecessor.
        if uses_timeline && random.chance(50) && (signals == 0 || wait) {
            signals += 1;
            column.push(format!("signal t {signals}"));
        } else if !uses_timeline && random.chance(35) && agent + 1 < agents && signals == 0 {
            column.push("signal s0".to_owned());
            signals = 1;
        }
        columns.push(column);
    }
    if host {
        let mut column = vec![format!("P{agents}@host")];
        if random.chance(60) {
            column.push(access(random, true));
        }
        let submitted_agent = random.below(agents);
        if random.chance(70) {
            column.push(format!("submit P{submitted_agent}"));
            column.push(format!("wait P{submitted_agent}"));
        } else if let Some(late_column) = columns.get_mut(submitted_agent) {
            column.push("signal late".to_owned());
            late_column.insert(1, "barrier host:host_write -> compute:shader_read".to_owned());
            late_column.insert(1, "wait late".to_owned());
        }
        column.push(access(random, true));
        columns.push(column);
    }
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column.get(row).map_or("", String::as_str));
        cells.collect::<Vec<_>>().join(" | ")
    };
    let table: String = (0..rows).map(|at| row(at) + " ;\n").collect();
    let declared = if host { "buffer u32 x [host] = 0; y = 0;" } else { "x = 0; y = 0;" };
    (format!("VULKAN calls-{seed}\n{{ {declared} }}\n{table}exists (x == 1)\n"), columns.len())
}
