//! Whether what the host reads is what the submission wrote that it has waited for: behind everything else the device writes a word of its
//! own, which the host has overwritten before. Where that word is missing, nothing that lies beside it is looked at: all instances of
//! the submission count as not executed. What else is poisoned tells which instances a device has left out; this tells of a device that
//! gives back what nobody wrote, be it as harmless as zero.

use plan::{Buffer, BufferId, DeviceError, Memory, Plan, Prepared, QueueId, Step};

/// What the device writes.
const WRITTEN: u32 = 0x3c96_e15b;

/// The buffer of the word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(BufferId);

impl Mark {
    /// Adds the word and its steps behind all that a plan has on a queue.
    pub fn add(plan: &mut Plan, queue: QueueId) -> Mark {
        let buffer = BufferId(plan.buffers.len() as u32);
        plan.buffers.push(Buffer { words: 1, memory: Memory::Readback, name: "mark for the host" });
        plan.steps.extend([Step::Fill { queue, buffer, value: WRITTEN }, Step::ToHost { queue, buffer }]);
        Mark(buffer)
    }

    /// Overwrites the word, for the next submission.
    ///
    /// # Errors
    /// When the device does not let the host write.
    pub fn clear(self, prepared: &mut dyn Prepared) -> Result<(), DeviceError> {
        prepared.write(self.0)?.fill(!WRITTEN);
        Ok(())
    }

    /// Whether the last submission wrote it.
    ///
    /// # Errors
    /// When the device does not let the host read.
    pub fn is_written(self, prepared: &mut dyn Prepared) -> Result<bool, DeviceError> {
        Ok(prepared.read(self.0)?.first() == Some(&WRITTEN))
    }
}
