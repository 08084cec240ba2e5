//! Whether a device executes all that it is given with a shader: beside each dispatch stands one of our own, with a copy to its
//! buffer before it and one from there behind it, which answers to a word that is another in each submission. A shader's own
//! contents cannot tell that: it may leave what was there, and none of it has to be written by the dispatch that is looked at.

use plan::{Buffer, BufferId, DeviceError, Kernel, KernelId, Memory, Plan, Prepared, Step};
use shaders::canary::{BYTES, WORDS, answered, kernel};

use super::QUEUE;

/// The kernel of all canaries.
pub(super) const KERNEL: KernelId = KernelId(1);

/// The canaries of a plan.
pub(super) struct Canaries {
    /// The word that they are asked, for the copies to their buffers; their dispatches have it as push constant.
    asked: BufferId,
    /// Their dispatches, among the steps of the plan.
    pub steps: Vec<usize>,
    /// By canary what it answered.
    answers: Vec<BufferId>,
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
    /// None yet, in a plan that has the shader's kernel and was made after so many others.
    pub fn new(plan: &mut Plan, turn: usize) -> Canaries {
        debug_assert_eq!(plan.kernels.len(), KERNEL.0 as usize);
        plan.kernels.push(Kernel {
            words: kernel(),
            bindings: 1,
            push_constant_bytes: BYTES,
            ..Kernel::default()
        });
        let asked = buffer(plan, Memory::Shared, "what canaries are asked");
        Canaries { asked, steps: Vec::new(), answers: Vec::new(), turn }
    }

    /// Puts one more among the steps of a dispatch: each time at another place, so that a device that leaves out one in so many
    /// comes to some of them.
    pub fn add(&mut self, plan: &mut Plan, steps: &mut Steps) {
        let own = buffer(plan, Memory::Device, "canary");
        let answer = buffer(plan, Memory::Readback, "what a canary answered, for the host");
        let place = |count: usize| (self.turn + self.answers.len()) % (count + 1);
        steps
            .prepare
            .insert(place(steps.prepare.len()), Step::Copy { queue: QUEUE, from: self.asked, to: own });
        let dispatch = Step::Dispatch {
            queue: QUEUE,
            kernel: KERNEL,
            workgroups: 1,
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

    /// Whether all of them have answered.
    ///
    /// # Errors
    /// When the device does not let the host read.
    pub fn answered(&self, prepared: &mut dyn Prepared, submission: u64) -> Result<bool, DeviceError> {
        let asked = word(submission);
        let [first, second] = answered(asked);
        for answer in &self.answers {
            if !prepared.read(*answer)?.starts_with(&[asked, asked, first, second]) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Another for each of 2³² submissions; not zero, which fresh memory may hold, but for the last of them.
fn word(submission: u64) -> u32 {
    (submission as u32).wrapping_add(1).wrapping_mul(0x9e37_79b1)
}

fn buffer(plan: &mut Plan, memory: Memory, name: &'static str) -> BufferId {
    plan.buffers.push(Buffer { words: WORDS, memory, name });
    BufferId(plan.buffers.len() as u32 - 1)
}
