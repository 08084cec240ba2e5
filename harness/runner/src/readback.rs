//! Verifies readback: the device computes checksums over its memory, and the host compares them with those of
//! the words that it reads.
//!
//! Poison, receipts and markers detect work that was not executed. They do not detect words that are wrong in
//! the host's view only: exchanged or flipped on the way, or stale. Such words could be an outcome that the
//! device never had, forbidden or allowed. Each checksum has a salt that differs in each submission, so that
//! stale words with their stale checksum do not match either.
//!
//! Sound in one direction: if a checksum does not match, the dispatch is discarded for any cause. If all
//! match, host and device read the same words, except with a probability of 2⁻³².
//!
//! Initial values are verified in the same way before the kernels run: a driver may change them in host memory, copy
//! a part of them, or omit texels, which then have values of an earlier submission.
//!
//! The simulated GPU is not checked, because the host reads its memory directly. Memory that host threads access
//! is checked before the first and after the last of them; for changes in between, see `guards`.

use plan::{BufferId, BufferMemory, DeviceError, Kernel, Plan, PlanStep, Prepared, QueueId};
use shaders::Parameters;
use shaders::checksum::{self, WordRange};

use crate::host_copy::{BufferPrefix, HostCopy};

/// The words of each invocation in the largest range.
const WORDS_PER_INVOCATION: u64 = 64;
/// The maximum number of workgroups, more than any device runs concurrently.
const MAX_WORKGROUPS: u64 = 1024;
/// The difference between the salts of two submissions.
const SALT_STEP: u32 = 0x9e37_79b9;

/// A buffer of the device, and the words that it must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBuffer {
    pub on_device: BufferId,
    pub expected: ExpectedWords,
    /// The largest number of words in a range.
    pub max_words: u64,
}

/// The words that a range of a device buffer must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedWords {
    /// Those of a buffer that the host reads or has written: the same, or its copy.
    OnHost(BufferId),
    /// The same word everywhere.
    Constant(u32),
}

/// A word of a storage that the host reads from each instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocationWord {
    /// Index of the storage.
    pub storage: u32,
    /// Index of the word in its unit.
    pub word: u32,
}

/// The words of a litmus test that a checksum covers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CheckedWords {
    Results,
    /// A word of a storage of all instances.
    Location(LocationWord),
    /// The counters of a device that counts.
    Counters(u64),
}

impl CheckedWords {
    /// Returns the words of a dispatch of `instances` with `slots` result words each.
    pub fn word_range(
        self,
        parameters: &Parameters,
        instances: usize,
        slots: usize,
        unit_words: usize,
    ) -> WordRange {
        let word = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        match self {
            CheckedWords::Results => WordRange::first_words(word(slots * instances)),
            CheckedWords::Counters(words) => WordRange::first_words(u32::try_from(words).unwrap_or(u32::MAX)),
            CheckedWords::Location(LocationWord { storage, word: index }) => WordRange {
                first: parameters
                    .unit_index(0, storage)
                    .saturating_mul(word(unit_words))
                    .saturating_add(index),
                step: parameters.stride.saturating_mul(word(unit_words)),
                count: word(instances),
            },
        }
    }
}

/// The checksums of a plan, one for each range of words that the host reads.
#[derive(Clone, Debug)]
pub(crate) struct ReadbackCheck {
    /// The checksums of the device, for the host.
    sums: BufferId,
    ranges: Vec<CheckedRange>,
    salt: u32,
}

#[derive(Clone, Copy, Debug)]
struct CheckedRange {
    /// Its dispatch step.
    step: usize,
    expected: ExpectedWords,
    /// The range of the submission in flight.
    range: WordRange,
}

impl ReadbackCheck {
    /// Inserts the checksums of one range of each buffer before the step `at` of a plan, on a queue; `None`
    /// without buffers.
    pub fn insert_into_plan(
        plan: &mut Plan,
        queue: QueueId,
        buffers: &[ReadBuffer],
        at: usize,
    ) -> Option<ReadbackCheck> {
        if buffers.is_empty() {
            return None;
        }
        let count = buffers.len() as u64;
        let device_sums = plan.add_buffer(count, BufferMemory::Private, "checksums");
        let sums = plan.add_buffer(count, BufferMemory::Readback, "checksums for the host");
        let kernel = plan.add_kernel(Kernel {
            words: checksum::kernel(),
            bindings: 2,
            push_constant_bytes: checksum::PUSH_CONSTANT_BYTES,
            ..Kernel::default()
        });
        // Their push constants change with each submission, and only this command buffer is recorded again.
        let mut steps = vec![
            PlanStep::CommandBuffer { queue },
            PlanStep::Fill { queue, buffer: device_sums, value: 0 },
            PlanStep::Barrier { queue },
        ];
        let mut checked = Vec::with_capacity(buffers.len());
        for ReadBuffer { on_device, expected, max_words: most } in buffers.iter().copied() {
            let each = u64::from(checksum::WORKGROUP_SIZE) * WORDS_PER_INVOCATION;
            let workgroups = most.div_ceil(each).clamp(1, MAX_WORKGROUPS) as u32;
            let step = at + steps.len();
            checked.push(CheckedRange { step, expected, range: WordRange::first_words(0) });
            steps.push(PlanStep::Dispatch {
                queue,
                kernel,
                workgroups,
                bindings: vec![on_device, device_sums],
                push_constants: vec![0; checksum::PUSH_CONSTANT_BYTES as usize],
            });
        }
        steps.extend([
            PlanStep::Barrier { queue },
            PlanStep::Copy { queue, from: device_sums, to: sums },
            PlanStep::ToHost { queue, buffer: sums },
        ]);
        plan.steps.splice(at..at, steps);
        Some(ReadbackCheck { sums, ranges: checked, salt: 0 })
    }

    /// Returns the positions of its dispatches among the steps of the plan.
    pub fn dispatch_steps(&mut self) -> impl Iterator<Item = &mut usize> {
        self.ranges.iter_mut().map(|checked| &mut checked.step)
    }

    /// Sets the range of each buffer for the next submission.
    ///
    /// # Errors
    /// None for the plan of these checksums.
    pub fn set_ranges(
        &mut self,
        prepared: &mut dyn Prepared,
        ranges: impl IntoIterator<Item = WordRange>,
    ) -> Result<(), DeviceError> {
        self.salt = self.salt.wrapping_add(SALT_STEP);
        for ((place, checked), range) in (0..).zip(&mut self.ranges).zip(ranges) {
            checked.range = range;
            let constants = checksum::push_constants(range, place, self.salt);
            prepared.set_push_constants(checked.step, &constants)?;
        }
        Ok(())
    }

    /// Returns the buffer of the checksums, for the host.
    pub fn sums(&self) -> BufferPrefix {
        BufferPrefix::whole(self.sums)
    }

    /// Returns true if the device has the expected words, where those of the host are `copied`.
    ///
    /// # Errors
    /// If a buffer was not copied.
    pub fn matches(&self, copied: &HostCopy) -> Result<bool, DeviceError> {
        let sums = copied.words(self.sums)?;
        for (place, checked) in self.ranges.iter().enumerate() {
            let expected = match checked.expected {
                ExpectedWords::OnHost(buffer) => checked.range.checksum(copied.words(buffer)?, self.salt),
                ExpectedWords::Constant(word) => Some(checked.range.checksum_of_constant(word, self.salt)),
            };
            if expected.is_none() || sums.get(place).copied() != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
