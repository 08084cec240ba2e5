//! What happens outside the shaders' instructions: operations of the API and of host threads, access masks, shader calls
//! and interlocked sections.

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
    /// `flush`: makes writes of host threads to these names, all of them where none is given, available to the host domain.
    Flush(Vec<LocationId>),
    /// `invalidate`: makes the host domain visible to host threads in these names, all of them where none is given.
    Invalidate(Vec<LocationId>),
    /// `submit P1`: what the host thread has done comes before everything that these threads do. It moves what is available
    /// to the host domain to the device domain and makes that visible to every agent of the device.
    Submit(Vec<ThreadId>),
    /// `wait P1`: everything that these threads do comes before what the host thread does from here on.
    Wait(Vec<ThreadId>),
}

impl SystemOperation {
    /// The word of the language for it.
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

    /// The same in quotes, for messages.
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

    /// Whether it is `avdevice` or `visdevice` without an access mask. Both are of the memory model's own events, which every
    /// model knows; the others are of the whole language.
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

    /// Whether only a thread of the host does it; the others stand in a command buffer.
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
    /// Which of the fragments that overlap comes first.
    pub order: InterlockOrder,
    /// The section, compared as text.
    pub section: String,
}

/// Which end of an interlocked section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterlockEnd {
    /// Waits until the sections of earlier fragments have ended.
    Begin,
    /// Ends the section.
    End,
}

/// In which order fragments that overlap execute their sections: an execution mode of the shader, and so one of the whole test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InterlockOrder {
    /// That of their primitives (`PixelInterlockOrderedEXT` and its kind): the earlier column comes first.
    #[default]
    Ordered,
    /// `.unordered`: any (`PixelInterlockUnorderedEXT` and its kind), one after the other.
    Unordered,
}

impl Test {
    /// In which order overlapping fragments execute their sections; `None` where there are no sections.
    pub fn interlock_order(&self) -> Option<InterlockOrder> {
        let mut instructions = self.threads.iter().flat_map(|thread| &thread.instructions);
        instructions.find_map(|instruction| match &instruction.kind {
            InstructionKind::Interlock(interlock) => Some(interlock.order),
            _ => None,
        })
    }

    /// The interlocked section that a thread names first.
    pub fn section(&self, thread: ThreadId) -> Option<&str> {
        self.thread(thread).instructions.iter().find_map(|instruction| match &instruction.kind {
            InstructionKind::Interlock(interlock) => Some(interlock.section.as_str()),
            _ => None,
        })
    }
}

/// A set of accesses, as the access masks of a memory dependency name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessMask(u16);

/// The words of [`AccessMask`], in the order in which they are printed: bit i is word i.
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
    /// No access: `.none`, an execution dependency alone.
    pub const NONE: AccessMask = AccessMask(0);
    /// Reads of storage buffers, images and workgroup memory by shaders.
    pub const SHADER_READ: AccessMask = AccessMask(1);
    /// Writes by shaders.
    pub const SHADER_WRITE: AccessMask = AccessMask(1 << 1);
    /// Reads of uniform buffers, of which a litmus test has none.
    pub const UNIFORM_READ: AccessMask = AccessMask(1 << 2);
    /// Reads by transfer commands, of which a litmus test has none.
    pub const TRANSFER_READ: AccessMask = AccessMask(1 << 3);
    /// Writes by transfer commands, of which a litmus test has none.
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

    /// Every single access, in the order in which they are printed.
    pub fn singles() -> impl Iterator<Item = AccessMask> {
        (0..WORDS.len()).map(|bit| AccessMask(1 << bit))
    }

    /// The access that a word of the language names.
    pub fn of_word(word: &str) -> Option<AccessMask> {
        WORDS.iter().position(|known| *known == word).map(|bit| AccessMask(1 << bit))
    }

    /// The words of its members.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        WORDS.into_iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, word)| word)
    }

    /// Both sets together.
    pub fn with(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 | other.0)
    }

    /// The set without the members of the other.
    pub fn without(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 & !other.0)
    }

    /// The members that the other set has too.
    pub(crate) fn only(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 & other.0)
    }

    /// Whether the sets have a member in common.
    pub fn intersects(self, other: AccessMask) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it covers what a shader (`host` false) or a host thread does: its reads, or its writes.
    pub fn covers(self, host: bool, write: bool) -> bool {
        self.intersects(match (host, write) {
            (false, false) => AccessMask::SHADER_READ.with(AccessMask::MEMORY_READ),
            (false, true) => AccessMask::SHADER_WRITE.with(AccessMask::MEMORY_WRITE),
            (true, false) => AccessMask::HOST_READ,
            (true, true) => AccessMask::HOST_WRITE,
        })
    }
}
