//! Whether what the host reads is what the submission wrote that it has waited for, and executed once: behind everything else the device
//! keeps what it finds in a word that the host has overwritten before, and writes one of its own there. Where that is missing, or was
//! there already, nothing that lies beside it is looked at: all instances of the submission count as not executed. What else is poisoned
//! tells which instances a device has left out; this tells of a device that gives back what nobody wrote, be it as harmless as zero.

use plan::{Buffer, BufferId, DeviceError, Memory, Plan, Prepared, QueueId, Step};

/// What the device writes.
const WRITTEN: u32 = 0x3c96_e15b;

/// The buffers of the word and of what was there before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    word: BufferId,
    before: BufferId,
}

impl Mark {
    /// Adds the words and their steps behind all that a plan has on a queue.
    pub fn add(plan: &mut Plan, queue: QueueId) -> Mark {
        let mut buffer = |name| {
            plan.buffers.push(Buffer { words: 1, memory: Memory::Readback, name });
            BufferId(plan.buffers.len() as u32 - 1)
        };
        let (word, before) = (buffer("mark for the host"), buffer("what was at the mark"));
        plan.steps.extend([
            Step::Copy { queue, from: word, to: before },
            Step::Barrier { queue },
            Step::Fill { queue, buffer: word, value: WRITTEN },
            Step::ToHost { queue, buffer: before },
            Step::ToHost { queue, buffer: word },
        ]);
        Mark { word, before }
    }

    /// Overwrites the words, for the next submission: neither is as it will be.
    ///
    /// # Errors
    /// When the device does not let the host write.
    pub fn clear(self, prepared: &mut dyn Prepared) -> Result<(), DeviceError> {
        prepared.write(self.word)?.fill(!WRITTEN);
        prepared.write(self.before)?.fill(WRITTEN);
        Ok(())
    }

    /// Whether the last submission wrote it, and once.
    ///
    /// # Errors
    /// When the device does not let the host read.
    pub fn is_written(self, prepared: &mut dyn Prepared) -> Result<bool, DeviceError> {
        let word = prepared.read(self.word)?.first() == Some(&WRITTEN);
        Ok(word && prepared.read(self.before)?.first() == Some(&!WRITTEN))
    }
}
