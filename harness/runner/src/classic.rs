//! The classic scheme: a frozen baseline for rates.
//!
//! Store buffering in the parallel testing environment of the GPU litmus-testing literature, without stress:
//! 64 workgroups of 256 invocations, stride 2, no barrier, no shuffling. Every invocation runs both threads,
//! for different instances. A second kernel counts outcomes on the device, and everything including the
//! pipelines is rebuilt for every iteration.
//!
//! Improvements of the other schemes must not change this one.

use std::time::{Duration, Instant};

use plan::{
    Buffer, BufferId, BufferMemory, Device, DeviceError, Kernel, KernelId, Plan, PlanStep, Queue, QueueId,
};

use crate::canary::submit_once;
use crate::error::Cause;

/// The modules of `classic/test.spvasm` and `classic/classify.spvasm`.
const MODULES: [&[u8]; 2] =
    [include_bytes!("../classic/test.spv"), include_bytes!("../classic/classify.spv")];
/// The same under GLSL450 in SPIR-V 1.3, for devices without the Vulkan memory model. The accesses need no
/// change: they are relaxed atomics at device scope, and plain accesses to memory that no other invocation uses.
const GLSL450_MODULES: [&[u8]; 2] =
    [include_bytes!("../classic/test-glsl450.spv"), include_bytes!("../classic/classify-glsl450.spv")];
/// Number of testing workgroups.
const WORKGROUPS: u32 = 64;
/// Invocations of a workgroup.
const WORKGROUP_SIZE: u32 = 256;
/// Words between two locations.
const STRIDE: u64 = 2;
/// The initial value of result words, which is not an outcome.
const POISON: u32 = 0xa7c5_3d91;

/// Instances of an iteration.
pub const INSTANCES: u64 = WORKGROUPS as u64 * WORKGROUP_SIZE as u64;

/// The counts of a run of store buffering.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreBuffering {
    /// Instances by outcome, with index 2 × r0 + r1: both reads 0 (weak), the two serial orders, both reads
    /// 1.
    pub counts: [u64; 4],
    /// Instances with any other result, including those that did not run.
    pub other: u64,
    /// Elapsed seconds, including all rebuilding.
    pub seconds: f64,
}

impl StoreBuffering {
    pub fn instances(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.other
    }

    /// Counts the instances whose outcome no serial order of the threads produces.
    pub fn interleaved_instances(&self) -> u64 {
        self.counts[0] + self.counts[3]
    }

    /// Counts the instances in which both reads missed the writes.
    pub fn weak_instances(&self) -> u64 {
        self.counts[0]
    }
}

/// Runs iterations on `device` for `time`, at least one.
///
/// # Errors
/// Errors of the device, [`Cause::NullDevice`] if it executes nothing, [`Cause::TimedOut`] if an iteration
/// exceeds `timeout`. After a timeout, the device must not be destroyed.
pub fn run(device: &dyn Device, time: Duration, timeout: Duration) -> Result<StoreBuffering, Cause> {
    crate::canary::check(device, timeout)?;
    let mut total = StoreBuffering::default();
    let started = Instant::now();
    loop {
        let counts = run_iteration(device, timeout)?;
        let [both_missed, first, second, both_seen, other] = counts.map(u64::from);
        for (sum, count) in total.counts.iter_mut().zip([both_missed, first, second, both_seen]) {
            *sum += count;
        }
        total.other += other;
        if started.elapsed() >= time {
            total.seconds = started.elapsed().as_secs_f64();
            return Ok(total);
        }
    }
}

/// Builds everything, runs one iteration and returns the five counters.
fn run_iteration(device: &dyn Device, timeout: Duration) -> Result<[u32; 5], Cause> {
    device.clear_pipeline_cache();
    let mut prepared = submit_once(device, &build_plan(device.capabilities().memory_model), timeout)?;
    let counters = prepared.read(COUNTERS)?.first_chunk::<5>().copied();
    counters.ok_or_else(|| DeviceError::InvalidPlan("five counters are missing".into()).into())
}

const LOCATIONS: BufferId = BufferId(0);
const RESULTS: BufferId = BufferId(1);
const COUNTERS: BufferId = BufferId(2);

/// Converts the bytes of a module to words.
fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn build_plan(memory_model: bool) -> Plan {
    let queue = QueueId(0);
    let modules = if memory_model { MODULES } else { GLSL450_MODULES };
    let kernel = |bytes| Kernel { words: to_words(bytes), bindings: 2, ..Kernel::default() };
    let dispatch = |number, bindings: [BufferId; 2]| PlanStep::Dispatch {
        queue,
        kernel: KernelId(number),
        workgroups: WORKGROUPS,
        bindings: bindings.to_vec(),
        push_constants: Vec::new(),
    };
    let fill = |buffer, value| PlanStep::Fill { queue, buffer, value };
    let buffer = |words, memory, name| Buffer { words, memory, name };
    Plan {
        kernels: modules.map(kernel).into(),
        buffers: vec![
            buffer(INSTANCES * STRIDE * 2, BufferMemory::Device, "locations"),
            buffer(INSTANCES * 2, BufferMemory::Device, "results"),
            buffer(5, BufferMemory::Readback, "counters"),
        ],
        queues: vec![Queue { family: 0 }],
        steps: vec![
            fill(LOCATIONS, 0),
            fill(RESULTS, POISON),
            fill(COUNTERS, 0),
            PlanStep::Barrier { queue },
            dispatch(0, [LOCATIONS, RESULTS]),
            PlanStep::Barrier { queue },
            dispatch(1, [RESULTS, COUNTERS]),
            PlanStep::Barrier { queue },
            PlanStep::ToHost { queue, buffer: COUNTERS },
        ],
        ..Plan::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// The committed binaries match their assembly text, and those under GLSL450 are valid SPIR-V 1.3.
    #[test]
    fn committed_words_equal_the_assembled_text() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("classic");
        let out = tempfile::tempdir().unwrap();
        let names = ["test", "classify", "test-glsl450", "classify-glsl450"];
        for (name, words) in names.into_iter().zip([MODULES, GLSL450_MODULES].concat()) {
            let (text, to) = (folder.join(format!("{name}.spvasm")), out.path().join(name));
            let is_glsl450 = name.ends_with("glsl450");
            let mut command = Command::new("spirv-as");
            command.args(["--target-env", if is_glsl450 { "spv1.3" } else { "spv1.5" }, "-o"]);
            match command.arg(&to).arg(text).status() {
                Err(error) => return println!("skipped: spirv-as is not installed ({error})"),
                Ok(status) => assert!(status.success(), "{name}"),
            }
            // The third word is the version of the assembler.
            let assembled = std::fs::read(&to).unwrap();
            assert_eq!(assembled.len(), words.len(), "{name}");
            assert!(assembled[..8] == words[..8] && assembled[12..] == words[12..], "{name}");
            if is_glsl450 {
                let valid = Command::new("spirv-val").args(["--target-env", "vulkan1.1"]).arg(&to).output();
                let valid = valid.unwrap();
                assert!(valid.status.success(), "{name}: {}", String::from_utf8_lossy(&valid.stderr));
            }
        }
    }

    /// The formulas assign every thread of every instance to one invocation, never both threads to one
    /// workgroup, and every location to one instance.
    #[test]
    fn the_formulas_are_permutations() {
        let (groups, size) = (u64::from(WORKGROUPS), u64::from(WORKGROUP_SIZE));
        let mut first = BTreeSet::new();
        let mut second = BTreeSet::new();
        let mut words = BTreeSet::new();
        for (group, local) in (0..groups).flat_map(|group| (0..size).map(move |local| (group, local))) {
            let id0 = group * size + local;
            let stripe = (group + 1 + local % (groups - 1)) % groups;
            let id1 = stripe * size + (local * 419) % size;
            assert!(first.insert(id0) && second.insert(id1) && stripe != group);
            assert!(words.insert(id0 * STRIDE * 2));
            assert!(words.insert((id0 * 1031 % INSTANCES) * STRIDE * 2 + STRIDE));
        }
        assert_eq!((first.len() as u64, second.len() as u64), (INSTANCES, INSTANCES));
        assert!(words.iter().all(|word| *word < INSTANCES * STRIDE * 2));
    }
}
