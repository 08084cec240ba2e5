//! Completion marker: proves that read-back data belongs to this submission and that it executed exactly
//! once.
//!
//! The host overwrites a word before each submission. After everything else, the device saves the word and
//! then writes a constant to it. If the constant is missing, or was in the word before, all data of the
//! submission is ignored, and all its instances count as not executed.
//!
//! Poison values show which instances a device omitted. The marker detects a device that returns data that it
//! never wrote, even plausible data such as zeros.

use plan::{BufferId, BufferMemory, DeviceError, Plan, PlanStep, Prepared, QueueId};

use crate::host_copy::{BufferPrefix, HostCopy};

/// The constant that the device writes.
const WRITTEN: u32 = 0x3c96_e15b;

/// The buffers of the word and of its saved value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletionMarker {
    word: BufferId,
    previous: BufferId,
}

impl CompletionMarker {
    /// Appends the marker's buffers and steps to a plan, on a queue.
    pub fn add_to_plan(plan: &mut Plan, queue: QueueId) -> CompletionMarker {
        let mut buffer = |name| plan.add_buffer(1, BufferMemory::Readback, name);
        let (word, before) = (buffer("marker for the host"), buffer("the previous value of the marker"));
        plan.steps.extend([
            PlanStep::Copy { queue, from: word, to: before },
            PlanStep::Barrier { queue },
            PlanStep::Fill { queue, buffer: word, value: WRITTEN },
            PlanStep::ToHost { queue, buffer: before },
            PlanStep::ToHost { queue, buffer: word },
        ]);
        CompletionMarker { word, previous: before }
    }

    /// Overwrites both words before a submission, each with a value that a complete submission does not
    /// leave.
    ///
    /// # Errors
    /// If the device does not let the host write.
    pub fn clear(self, prepared: &mut dyn Prepared) -> Result<(), DeviceError> {
        prepared.write(self.word)?.fill(!WRITTEN);
        prepared.write(self.previous)?.fill(WRITTEN);
        Ok(())
    }

    /// Returns both words, for the host.
    pub fn prefixes(self) -> [BufferPrefix; 2] {
        [self.word, self.previous].map(BufferPrefix::whole)
    }

    /// Returns true if the last submission wrote the marker exactly once.
    ///
    /// # Errors
    /// If the words were not copied.
    pub fn is_written(self, copied: &HostCopy) -> Result<bool, DeviceError> {
        let word = copied.words(self.word)?.first() == Some(&WRITTEN);
        Ok(word && copied.words(self.previous)?.first() == Some(&!WRITTEN))
    }
}
