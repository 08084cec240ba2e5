//! Accesses beyond the end of a resource that a robustness feature of Vulkan defines ("Robustness", Vulkan specification).

/// The effect of an access beyond the range of a buffer's descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferRobustness {
    /// Undefined behaviour.
    #[default]
    Disabled,
    /// `robustBufferAccess`: a load returns zero or any bytes of the buffer, a store changes any of them or none.
    WithinBuffer,
    /// `robustBufferAccess2`: a load returns zero, a store has no effect.
    Discarded,
}

impl BufferRobustness {
    /// Returns the robustness with the version of its feature; 0 is none.
    pub fn from_version(version: u32) -> Option<BufferRobustness> {
        [BufferRobustness::Disabled, BufferRobustness::WithinBuffer, BufferRobustness::Discarded]
            .get(version as usize)
            .copied()
    }

    /// Returns the version of the feature.
    pub fn version(self) -> u32 {
        self as u32
    }
}

/// The robustness of a pipeline stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Robustness {
    pub storage_buffers: BufferRobustness,
    pub uniform_buffers: BufferRobustness,
    /// True if atomics beyond the end of an image have no effect.
    pub images: bool,
}

impl Robustness {
    /// Returns true if an access beyond the end of a buffer may be defined.
    pub fn has_buffers(self) -> bool {
        [self.storage_buffers, self.uniform_buffers] != [BufferRobustness::Disabled; 2]
    }
}
