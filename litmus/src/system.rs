//! Synchronization outside of shader instructions: API operations, host operations, access masks, shader
//! calls and interlocked sections.

use crate::test::{InstructionKind, LocationId, Test, ThreadId};

/// An operation of the API (`#memory-model-vulkan-availability-visibility`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemOperation {
    /// `avdevice`: makes all writes ordered before it available to the device domain.
    AvailableToDevice,
    /// `visdevice`: makes the device domain visible to all reads ordered after it.
    VisibleFromDevice,
    /// `avdevice.shader_write…`: the availability half of a memory dependency. It makes the writes of the mask that are
    /// ordered before it available to the device domain; with `host_write`, a domain operation from the host domain to the
    /// device domain comes first.
    Available(AccessMask),
    /// `visdevice.shader_read…`: the visibility half of a memory dependency. It makes the device domain visible to the
    /// accesses of the mask that are ordered after it; with `host_read` or `host_write`, a domain operation from the
    /// device domain to the host domain comes after it.
    Visible(AccessMask),
    /// `flush`: makes host writes to these locations available to the host domain; no names mean all
    /// locations.
    Flush(Vec<LocationId>),
    /// `invalidate`: makes the host domain visible to host threads for these locations; no names mean all
    /// locations.
    Invalidate(Vec<LocationId>),
    /// `submit P1`: all earlier operations of the host thread happen before all operations of these threads.
    /// It makes values that are available in the host domain available in the device domain and visible to
    /// every agent of the device.
    Submit(Vec<ThreadId>),
    /// `wait P1`: all operations of these threads happen before later operations of the host thread.
    Wait(Vec<ThreadId>),
}

impl SystemOperation {
    /// Returns the keyword of the operation.
    pub fn keyword(&self) -> &'static str {
        match self {
            SystemOperation::AvailableToDevice | SystemOperation::Available(_) => "avdevice",
            SystemOperation::VisibleFromDevice | SystemOperation::Visible(_) => "visdevice",
            SystemOperation::Flush(_) => "flush",
            SystemOperation::Invalidate(_) => "invalidate",
            SystemOperation::Submit(_) => "submit",
            SystemOperation::Wait(_) => "wait",
        }
    }

    /// Returns the keyword in quotes, for messages.
    pub(crate) fn quoted_keyword(&self) -> &'static str {
        match self {
            SystemOperation::AvailableToDevice | SystemOperation::Available(_) => "`avdevice`",
            SystemOperation::VisibleFromDevice | SystemOperation::Visible(_) => "`visdevice`",
            SystemOperation::Flush(_) => "`flush`",
            SystemOperation::Invalidate(_) => "`invalidate`",
            SystemOperation::Submit(_) => "`submit`",
            SystemOperation::Wait(_) => "`wait`",
        }
    }

    /// Returns true for `avdevice` or `visdevice` without an access mask.
    ///
    /// Both are events of the memory model, which every model supports. The other operations are part of the
    /// language.
    pub fn is_unmasked(&self) -> bool {
        match self {
            SystemOperation::AvailableToDevice | SystemOperation::VisibleFromDevice => true,
            SystemOperation::Available(_)
            | SystemOperation::Visible(_)
            | SystemOperation::Flush(_)
            | SystemOperation::Invalidate(_)
            | SystemOperation::Submit(_)
            | SystemOperation::Wait(_) => false,
        }
    }

    /// Returns true if only a host thread performs it; the others are recorded in a command buffer.
    pub fn is_of_host(&self) -> bool {
        match self {
            SystemOperation::AvailableToDevice
            | SystemOperation::VisibleFromDevice
            | SystemOperation::Available(_)
            | SystemOperation::Visible(_) => false,
            SystemOperation::Flush(_)
            | SystemOperation::Invalidate(_)
            | SystemOperation::Submit(_)
            | SystemOperation::Wait(_) => true,
        }
    }
}

/// An end of an interlocked section of a fragment shader (`OpBeginInvocationInterlockEXT`, `OpEndInvocationInterlockEXT`).
/// Fragments that name the same section overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interlock {
    /// `interlock.begin` or `interlock.end`.
    pub end: InterlockEnd,
    /// The order of the sections of overlapping fragments.
    pub order: InterlockOrder,
    /// The name of the section, compared as text.
    pub section: String,
}

/// The two ends of an interlocked section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterlockEnd {
    /// Waits until the sections of earlier fragments have ended.
    Begin,
    /// Ends the section.
    End,
}

/// The order in which overlapping fragments execute their sections: an execution mode of the shader, so one
/// per test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InterlockOrder {
    /// Primitive order (`PixelInterlockOrderedEXT` and similar): the earlier column comes first.
    #[default]
    Ordered,
    /// `.unordered`: sequential in any order (`PixelInterlockUnorderedEXT` and similar).
    Unordered,
}

impl Test {
    /// Returns the order in which overlapping fragments execute their sections; `None` without sections.
    pub fn interlock_order(&self) -> Option<InterlockOrder> {
        let mut instructions = self.threads.iter().flat_map(|thread| &thread.instructions);
        instructions.find_map(|instruction| match &instruction.kind {
            InstructionKind::Interlock(interlock) => Some(interlock.order),
            _ => None,
        })
    }

    /// Returns the first interlocked section that a thread names.
    pub fn first_section(&self, thread: ThreadId) -> Option<&str> {
        self.thread(thread).instructions.iter().find_map(|instruction| match &instruction.kind {
            InstructionKind::Interlock(interlock) => Some(interlock.section.as_str()),
            _ => None,
        })
    }
}

/// A set of access types, like `VkAccessFlags2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessMask(u16);

/// The words of [`AccessMask`], in printing order: bit i is word i.
const WORDS: [&str; 9] = [
    "shader_read",
    "shader_write",
    "uniform_read",
    "transfer_read",
    "transfer_write",
    "host_read",
    "host_write",
    "memory_read",
    "memory_write",
];

impl AccessMask {
    /// No access: `.none`, a pure execution dependency.
    pub const NONE: AccessMask = AccessMask(0);
    /// Reads of storage buffers, images and workgroup memory by shaders.
    pub const SHADER_READ: AccessMask = AccessMask(1);
    /// Writes by shaders.
    pub const SHADER_WRITE: AccessMask = AccessMask(1 << 1);
    /// Reads of uniform buffers; litmus tests have none.
    pub const UNIFORM_READ: AccessMask = AccessMask(1 << 2);
    /// Reads by transfer commands; litmus tests have none.
    pub const TRANSFER_READ: AccessMask = AccessMask(1 << 3);
    /// Writes by transfer commands; litmus tests have none.
    pub const TRANSFER_WRITE: AccessMask = AccessMask(1 << 4);
    /// Reads by host threads.
    pub const HOST_READ: AccessMask = AccessMask(1 << 5);
    /// Writes by host threads.
    pub const HOST_WRITE: AccessMask = AccessMask(1 << 6);
    /// Both accesses of host threads.
    pub(crate) const HOST: AccessMask = AccessMask(0b11 << 5);
    /// Every read by the device.
    pub const MEMORY_READ: AccessMask = AccessMask(1 << 7);
    /// Every write by the device.
    pub const MEMORY_WRITE: AccessMask = AccessMask(1 << 8);

    /// Returns every single access type, in printing order.
    pub fn single_accesses() -> impl Iterator<Item = AccessMask> {
        (0..WORDS.len()).map(|bit| AccessMask(1 << bit))
    }

    /// Returns the access type that a word of the language names.
    pub fn from_word(word: &str) -> Option<AccessMask> {
        WORDS.iter().position(|known| *known == word).map(|bit| AccessMask(1 << bit))
    }

    /// Returns the words of its members.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        WORDS.into_iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, word)| word)
    }

    /// Returns the union.
    pub fn with(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 | other.0)
    }

    /// Returns the members that are not in the other set.
    pub fn without(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 & !other.0)
    }

    /// Returns the intersection.
    pub(crate) fn intersection(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 & other.0)
    }

    /// Returns true if the sets have a member in common.
    pub fn intersects(self, other: AccessMask) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if it covers the reads or the writes of a shader or of a host thread.
    pub fn covers_access(self, host: bool, write: bool) -> bool {
        self.intersects(match (host, write) {
            (false, false) => AccessMask::SHADER_READ.with(AccessMask::MEMORY_READ),
            (false, true) => AccessMask::SHADER_WRITE.with(AccessMask::MEMORY_WRITE),
            (true, false) => AccessMask::HOST_READ,
            (true, true) => AccessMask::HOST_WRITE,
        })
    }
}
