//! Whether a device executes all that it is given with a shader: beside each dispatch stands one of our own, with a copy to its
//! buffer before it and one from there behind it, which answers to a word that is another in each submission. A shader's own
//! contents cannot tell that: it may leave what was there, and none of it has to be written by the dispatch that is looked at. Each
//! workgroup of such a dispatch answers for itself, and keeps a tally, so that a device is noticed that executes a part of them, or
//! all twice.

use plan::{Buffer, BufferId, DeviceError, Kernel, KernelId, Memory, Plan, Prepared, Step};
use shaders::canary::{BYTES, WORDS, answered, counting, repeats};

use super::QUEUE;

/// The kernel of all canaries.
pub(super) const KERNEL: KernelId = KernelId(1);

/// Workgroups of a canary at least: a part of them is something else than all and none.
const LEAST_WORKGROUPS: u32 = 2;
/// Workgroups of a canary at most.
const MOST_WORKGROUPS: u32 = 64;

/// The canaries of a plan.
pub(super) struct Canaries {
    /// The word that they are asked, for the copies to their buffers; their dispatches have it as push constant.
    asked: BufferId,
    /// Their dispatches, among the steps of the plan.
    pub steps: Vec<usize>,
    /// By canary what it answered.
    answers: Vec<BufferId>,
    /// Workgroups of each.
    workgroups: u32,
    /// Moves the first one: how many plans were made before this one.
    turn: usize,
}

/// What is done for one dispatch of a shader.
#[derive(Default)]
pub(super) struct Steps {
    /// Its buffers are made ready.
    pub prepare: Vec<Step>,
    /// It is dispatched.
    pub run: Vec<Step>,
    /// What it left is copied, each time for the host.
    pub keep: Vec<[Step; 2]>,
}

impl Canaries {
    /// None yet, in a plan that has the shader's kernel, which is dispatched with so many workgroups, and was made after so many others.
    pub fn new(plan: &mut Plan, workgroups: u32, turn: usize) -> Canaries {
        debug_assert_eq!(plan.kernels.len(), KERNEL.0 as usize);
        plan.kernels.push(Kernel {
            words: counting(),
            bindings: 1,
            push_constant_bytes: BYTES,
            ..Kernel::default()
        });
        // A device that executes a part of some dispatches may do so with those of many workgroups alone.
        let workgroups = workgroups.clamp(LEAST_WORKGROUPS, MOST_WORKGROUPS);
        let asked = buffer(plan, workgroups, Memory::Shared, "what canaries are asked");
        Canaries { asked, steps: Vec::new(), answers: Vec::new(), workgroups, turn }
    }

    /// Puts one more among the steps of a dispatch: each time at another place, so that a device that leaves out one in so many
    /// comes to some of them.
    pub fn add(&mut self, plan: &mut Plan, steps: &mut Steps) {
        let own = buffer(plan, self.workgroups, Memory::Device, "canary");
        let answer = buffer(plan, self.workgroups, Memory::Readback, "what a canary answered, for the host");
        let place = |count: usize| (self.turn + self.answers.len()) % (count + 1);
        steps
            .prepare
            .insert(place(steps.prepare.len()), Step::Copy { queue: QUEUE, from: self.asked, to: own });
        let dispatch = Step::Dispatch {
            queue: QUEUE,
            kernel: KERNEL,
            workgroups: self.workgroups,
            bindings: vec![own],
            push_constants: vec![0; BYTES as usize],
        };
        steps.run.insert(place(steps.run.len()), dispatch);
        steps.keep.insert(
            place(steps.keep.len()),
            [
                Step::Copy { queue: QUEUE, from: own, to: answer },
                Step::ToHost { queue: QUEUE, buffer: answer },
            ],
        );
        self.answers.push(answer);
    }

    /// Asks them a word that no earlier submission has asked.
    ///
    /// # Errors
    /// When the device does not let the host write.
    pub fn ask(&self, prepared: &mut dyn Prepared, submission: u64) -> Result<(), DeviceError> {
        prepared.write(self.asked)?.fill(word(submission));
        for answer in &self.answers {
            prepared.write(*answer)?.fill(!word(submission));
        }
        for step in &self.steps {
            prepared.set_push_constants(*step, &word(submission).to_le_bytes())?;
        }
        Ok(())
    }

    /// Whether all workgroups of all of them have answered, and none has been executed twice.
    ///
    /// # Errors
    /// When the device does not let the host read.
    pub fn answered(&self, prepared: &mut dyn Prepared, submission: u64) -> Result<bool, DeviceError> {
        let asked = word(submission);
        let [first, second] = answered(asked);
        let once = |words: &[u32]| {
            let [copied, _, own @ ..] = words else { return false };
            *copied == asked && own == [first, second] && !repeats(words, asked)
        };
        for answer in &self.answers {
            let mut words = prepared.read(*answer)?.chunks_exact(WORDS as usize);
            if words.len() < self.workgroups as usize || !words.all(once) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Another for each of 2³² submissions; not zero, which fresh memory may hold, but for the last of them. No sum of a few of them is a
/// small multiple of another, so that a tally that was not made ready is taken for none of [repetitions](repeats).
fn word(submission: u64) -> u32 {
    // Steps that can be undone mix the bits (the finalizer of MurmurHash3).
    let mut word = (submission as u32).wrapping_add(1);
    for (shift, factor) in [(16, 0x85eb_ca6b), (13, 0xc2b2_ae35), (16, 1)] {
        word = (word ^ (word >> shift)).wrapping_mul(factor);
    }
    word
}

/// A buffer with words for so many workgroups.
fn buffer(plan: &mut Plan, workgroups: u32, memory: Memory, name: &'static str) -> BufferId {
    plan.buffers.push(Buffer { words: WORDS * u64::from(workgroups), memory, name });
    BufferId(plan.buffers.len() as u32 - 1)
}
