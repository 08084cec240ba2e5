//! Canaries: dispatches that detect partial execution of a submission.
//!
//! Next to each dispatch of a shader, a submission has a second dispatch, with a copy to its buffer
//! before it and one from there after it. The kernel computes an answer from a word that differs in each
//! submission. A shader's own contents cannot show that it was executed, because it may leave its buffers
//! unchanged.
//!
//! If the shader has images, the canary writes to one too: a driver may bind another layer of an image than it
//! copies.
//!
//! Each workgroup of a canary answers separately and counts its executions, so that partial and repeated
//! execution are detected.

use plan::{
    BufferId, BufferMemory, DeviceError, Image, ImageAccess, ImageFormat, ImageId, ImageShape, Kernel,
    KernelId, Plan, PlanStep, Prepared,
};
use shaders::canary::{
    OVERFLOW_WORDS, WORDS, counting_kernel, counting_kernel_with_image, counting_push_constants,
    expected_answer, is_repeated,
};

use super::QUEUE;
use crate::dispatch::Execution;
use crate::host_copy::HostCopy;

/// The kernel of all canaries.
pub(super) const KERNEL: KernelId = KernelId(1);

/// The minimum workgroups of a canary, so that a part of them differs from all and from none.
const MIN_WORKGROUPS: u32 = 2;
/// The maximum workgroups of a canary.
const MAX_WORKGROUPS: u32 = 64;

pub(super) struct Canaries {
    /// The buffer with the input word, for the copies; the dispatches get it as push constant.
    inputs: BufferId,
    /// The indices of their dispatch steps.
    pub steps: Vec<usize>,
    answers: Vec<BufferId>,
    /// The texels of the canary's image, for the host.
    texels: Option<BufferId>,
    /// The shader has images.
    has_image: bool,
    workgroups: u32,
    /// The number of plans built before this one, which shifts the position of the first canary.
    plan_number: usize,
}

#[derive(Default)]
pub(super) struct DispatchSteps {
    /// Initializes its buffers.
    pub prepare: Vec<PlanStep>,
    pub run: Vec<PlanStep>,
    /// Copies its contents, each copy followed by its transfer to the host.
    pub read_back: Vec<[PlanStep; 2]>,
}

impl Canaries {
    /// Creates an empty set in a plan that contains the shader's kernel; `workgroups` and `turn` are those of
    /// its dispatches and plan.
    pub fn new(plan: &mut Plan, workgroups: u32, turn: usize, has_image: bool) -> Canaries {
        debug_assert_eq!(plan.kernels.len(), KERNEL.0 as usize);
        plan.kernels.push(Kernel {
            words: if has_image { counting_kernel_with_image() } else { counting_kernel() },
            bindings: 1,
            push_constant_bytes: counting_push_constants(0, 0).len() as u32,
            ..Kernel::default()
        });
        // A device may execute dispatches partially only if they have many workgroups.
        let workgroups = workgroups.clamp(MIN_WORKGROUPS, MAX_WORKGROUPS);
        let inputs = add_buffer(plan, workgroups, BufferMemory::Shared, "canary inputs");
        let (steps, answers) = (Vec::new(), Vec::new());
        Canaries { inputs, steps, answers, texels: None, has_image, workgroups, plan_number: turn }
    }

    /// Adds a canary to the steps of a dispatch, each time at another position, so that a device that omits
    /// every nth command omits some canaries.
    pub fn add_canary(&mut self, plan: &mut Plan, steps: &mut DispatchSteps) {
        let own = add_buffer(plan, self.workgroups, BufferMemory::Private, "canary");
        let answer =
            add_buffer(plan, self.workgroups, BufferMemory::Readback, "canary results, for the host");
        // The position among the other steps changes from canary to canary.
        let rotated_position = |count: usize| (self.plan_number + self.answers.len()) % (count + 1);
        steps.prepare.insert(
            rotated_position(steps.prepare.len()),
            PlanStep::Copy { queue: QUEUE, from: self.inputs, to: own },
        );
        let dispatch = PlanStep::Dispatch {
            queue: QUEUE,
            kernel: KERNEL,
            workgroups: self.workgroups,
            bindings: vec![own],
            push_constants: counting_push_constants(0, self.workgroups),
        };
        steps.run.insert(rotated_position(steps.run.len()), dispatch);
        steps.read_back.insert(
            rotated_position(steps.read_back.len()),
            [
                PlanStep::Copy { queue: QUEUE, from: own, to: answer },
                PlanStep::ToHost { queue: QUEUE, buffer: answer },
            ],
        );
        if self.has_image {
            self.add_image(plan, steps);
        }
        self.answers.push(answer);
    }

    /// Adds the image of the only canary, after those of the shader.
    fn add_image(&mut self, plan: &mut Plan, steps: &mut DispatchSteps) {
        let image = ImageId(plan.images.len() as u32);
        plan.images.push(Image {
            shape: ImageShape::TwoDimensional { width: self.workgroups, height: 1 },
            format: ImageFormat::UNSIGNED,
            access: ImageAccess::Storage,
            memory: BufferMemory::Private,
            name: "image of a canary",
        });
        plan.kernels.get_mut(KERNEL.0 as usize).into_iter().for_each(|kernel| kernel.images.push(image));
        let texels =
            add_buffer(plan, self.workgroups, BufferMemory::Readback, "texels of a canary, for the host");
        steps.prepare.push(PlanStep::ToImage { queue: QUEUE, from: self.inputs, to: image });
        steps.read_back.push([
            PlanStep::FromImage { queue: QUEUE, from: image, to: texels },
            PlanStep::ToHost { queue: QUEUE, buffer: texels },
        ]);
        self.texels = Some(texels);
    }

    /// Sets the input word, which no earlier submission used.
    ///
    /// # Errors
    /// If the device does not let the host write.
    pub fn set_input(&self, prepared: &mut dyn Prepared, submission: u64) -> Result<(), DeviceError> {
        prepared.write(self.inputs)?.fill(input_word(submission));
        for answer in &self.answers {
            prepared.write(*answer)?.fill(!input_word(submission));
        }
        if let Some(texels) = self.texels {
            prepared.write(texels)?.fill(input_word(submission));
        }
        for step in &self.steps {
            prepared.set_push_constants(
                *step,
                &counting_push_constants(input_word(submission), self.workgroups),
            )?;
        }
        Ok(())
    }

    /// Returns the buffers that the host reads.
    pub fn read_buffers(&self) -> impl Iterator<Item = BufferId> {
        self.answers.iter().copied().chain(self.texels)
    }

    /// Checks that every workgroup answered, that none was executed twice, and that there were no others.
    ///
    /// # Errors
    /// If a buffer was not copied.
    pub fn check_execution(&self, copied: &HostCopy, submission: u64) -> Result<Execution, DeviceError> {
        let input = input_word(submission);
        let [first, second] = expected_answer(input);
        let is_executed_once = |words: &[u32]| {
            let [input_copy, _, own @ ..] = words else { return false };
            *input_copy == input && own == [first, second] && !is_repeated(words, input)
        };
        if let Some(texels) = self.texels {
            let own = copied.words(texels)?.get(..self.workgroups as usize);
            if !own.is_some_and(|own| own.iter().all(|texel| *texel == second)) {
                return Ok(Execution::Incomplete);
            }
        }
        let mut outside = 0;
        for answer in &self.answers {
            let (workgroups, rest) = copied.words(*answer)?.as_chunks::<{ WORDS as usize }>();
            let [overflow, ..] = rest else { return Ok(Execution::Incomplete) };
            if workgroups.len() < self.workgroups as usize
                || !workgroups.iter().all(|words| is_executed_once(words))
            {
                return Ok(Execution::Incomplete);
            }
            outside += u64::from(overflow.wrapping_sub(input));
        }
        Ok(if outside == 0 { Execution::AsRequested } else { Execution::Excessive { outside } })
    }
}

/// Returns a different word for each of 2³² submissions. Only the last is zero, which fresh memory may
/// contain. No sum of a few of these words is a small multiple of another, so that a counter that was not
/// reset is not mistaken for [repetitions](is_repeated).
fn input_word(submission: u64) -> u32 {
    // The finalizer of MurmurHash3: invertible steps that mix the bits.
    let mut word = (submission as u32).wrapping_add(1);
    for (shift, factor) in [(16, 0x85eb_ca6b), (13, 0xc2b2_ae35), (16, 1)] {
        word = (word ^ (word >> shift)).wrapping_mul(factor);
    }
    word
}

/// Adds a buffer with the words of this many workgroups and the overflow word.
fn add_buffer(plan: &mut Plan, workgroups: u32, memory: BufferMemory, name: &'static str) -> BufferId {
    plan.add_buffer(WORDS * u64::from(workgroups) + OVERFLOW_WORDS, memory, name)
}
