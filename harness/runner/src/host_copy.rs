//! A private copy of the words that a submission left for the host.
//!
//! A driver may change host-visible memory at any time, also while the host reads it. All checks and counts of
//! a submission therefore use one copy. Device checksums over the same words verify the copy, and before
//! the memory is used again, the host compares it with the copy: a driver that changes memory after a submission
//! may also have changed it before the checksums.

use plan::{BufferId, DeviceError, Prepared};

/// The first words of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferPrefix {
    pub buffer: BufferId,
    /// The number of words; all words if the buffer has fewer.
    pub words: usize,
}

impl BufferPrefix {
    pub fn whole(buffer: BufferId) -> BufferPrefix {
        BufferPrefix { buffer, words: usize::MAX }
    }
}

/// The copied words of each buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostCopy {
    buffers: Vec<CopiedBuffer>,
}

#[derive(Clone, Debug)]
struct CopiedBuffer {
    buffer: BufferId,
    words: Vec<u32>,
    /// The words come from the memory of the buffer.
    is_read: bool,
}

impl HostCopy {
    /// Replaces the words of these buffers by those that the host reads now.
    ///
    /// # Errors
    /// If the device does not let the host read.
    pub fn update(
        &mut self,
        prepared: &mut dyn Prepared,
        prefixes: impl IntoIterator<Item = BufferPrefix>,
    ) -> Result<(), DeviceError> {
        for BufferPrefix { buffer, words } in prefixes {
            let read = prepared.read_prefix(buffer, words)?;
            let copied = self.copied_buffer(buffer, true);
            copied.clear();
            copied.extend_from_slice(read);
        }
        Ok(())
    }

    /// Replaces the words of these buffers by those of the device, which the host may not be able to map.
    ///
    /// # Errors
    /// If the device cannot copy them.
    pub fn fetch(
        &mut self,
        prepared: &mut dyn Prepared,
        prefixes: impl IntoIterator<Item = BufferPrefix>,
    ) -> Result<(), DeviceError> {
        for BufferPrefix { buffer, words } in prefixes {
            let fetched = prepared.fetch(buffer, words as u64)?.to_vec();
            self.insert(buffer, fetched);
        }
        Ok(())
    }

    /// Sets the words of a buffer without reading its memory.
    pub fn insert(&mut self, buffer: BufferId, words: Vec<u32>) {
        *self.copied_buffer(buffer, false) = words;
    }

    fn copied_buffer(&mut self, buffer: BufferId, is_read: bool) -> &mut Vec<u32> {
        let index = match self.buffers.iter().position(|copied| copied.buffer == buffer) {
            Some(index) => index,
            None => {
                self.buffers.push(CopiedBuffer { buffer, words: Vec::new(), is_read });
                self.buffers.len() - 1
            }
        };
        &mut self.buffers[index].words
    }

    /// Returns the words of a buffer.
    ///
    /// # Errors
    /// If it was not copied.
    pub fn words(&self, buffer: BufferId) -> Result<&[u32], DeviceError> {
        let copied = self.buffers.iter().find(|copied| copied.buffer == buffer);
        let missing = || DeviceError::InvalidPlan(format!("buffer {} is not read", buffer.0));
        copied.map(|copied| copied.words.as_slice()).ok_or_else(missing)
    }

    /// Returns true if the host still reads the same words.
    ///
    /// # Errors
    /// If the device does not let the host read.
    pub fn is_unchanged(&self, prepared: &mut dyn Prepared) -> Result<bool, DeviceError> {
        for CopiedBuffer { buffer, words, .. } in self.buffers.iter().filter(|copied| copied.is_read) {
            if prepared.read_prefix(*buffer, words.len())? != words.as_slice() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
