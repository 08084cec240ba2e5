//! Synchronization outside of shader instructions: API operations, host operations, access masks, shader
//! calls and interlocked sections.

use vocabulary::AccessMask;

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
    pub fn is_host_operation(&self) -> bool {
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
