//! Hazards between commands, and the resources that they are about.

/// Bytes of a resource: the first, and the one after the last.
pub type ByteRange = (u64, u64);

/// The bytes of a resource that a dispatch accesses, from the start of the resource's descriptor.
///
/// Those of an image are 16 per texel, first by level, then by layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceBytes {
    /// Ranges that are read.
    pub reads: Vec<ByteRange>,
    /// Ranges that are written.
    pub writes: Vec<ByteRange>,
    /// True if the ranges are a superset.
    pub is_possible: bool,
}

/// The accesses of a hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conflict {
    /// Two writes.
    WriteAfterWrite,
    /// A read of what a write leaves.
    ReadAfterWrite,
    /// A write to what a read needs.
    WriteAfterRead,
    /// A write of the host to what a command reads that may not have ended.
    Host,
    /// A use of an image in another layout, or after a transition that discarded what it reads.
    Layout,
    /// A use of contents that another queue family owns.
    Ownership,
}

/// Part of the order that a hazard lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MissingOrder {
    /// No chain of barriers and semaphores leads from the first command's stage to the second's.
    Execution,
    /// No first access scope of the chain contains the write.
    Availability,
    /// No second access scope of the chain contains the later access.
    Visibility,
    /// No flush of memory that is not coherent after the host wrote it.
    Flush,
    /// No invalidation of memory that is not coherent before the host reads it.
    Invalidation,
    /// A transfer of the contents to the queue family that needs them.
    Ownership(MissingTransfer),
    /// A transition between two layouts: the one that the image has, and the one that the command expects.
    Transition(i32, i32),
    /// The old layout of a transition that discards the contents: the one that the image has.
    Contents(i32),
}

/// Part of a transfer of ownership that a hazard lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MissingTransfer {
    /// Release and acquire.
    Both,
    /// The acquire after the release.
    Acquire,
    /// The release of these bytes before the acquire.
    Release,
    /// Equal families and layouts in release and acquire.
    EqualHalves,
    /// A semaphore, or a wait of the host, between release and acquire.
    Order,
}

/// Stages and accesses of one side of a hazard, for the barrier that orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSide {
    /// One stage, as `VkPipelineStageFlagBits2`.
    pub stage: u64,
    /// One access, as `VkAccessFlagBits2`.
    pub access: u64,
}

/// A resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceId {
    /// A buffer, by its id.
    Buffer(u64),
    /// An image, by its id.
    Image(u64),
}

/// Two commands that access the same bytes without the order that they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHazard {
    /// The accesses.
    pub conflict: Conflict,
    /// Index of the earlier command.
    pub first: usize,
    /// Index of the later command; none for the host.
    pub second: Option<usize>,
    /// The stage and access of the earlier command.
    pub before: AccessSide,
    /// The stage and access of the later command.
    pub after: AccessSide,
    /// The resource of the later command.
    pub resource: ResourceId,
    /// The bytes of the resource that both access, in order; none for images.
    pub bytes: Vec<ByteRange>,
    /// True if the earlier command accesses them through another resource.
    pub is_aliased: bool,
    /// The part of the order that is missing.
    pub missing: MissingOrder,
    /// True if one of the commands may access the bytes, and need not.
    pub is_possible: bool,
    /// True for a possible hazard of which nothing suggests that it is one.
    pub is_information: bool,
    /// Number of pairs of such commands.
    pub count: u64,
}

impl CommandHazard {
    /// Creates a hazard of a command alone, without bytes.
    pub(crate) fn new(conflict: Conflict, first: usize, resource: ResourceId, missing: MissingOrder) -> Self {
        let none = AccessSide { stage: 0, access: 0 };
        CommandHazard {
            conflict,
            first,
            second: None,
            before: none,
            after: none,
            resource,
            bytes: Vec::new(),
            is_aliased: false,
            missing,
            is_possible: false,
            is_information: false,
            count: 1,
        }
    }
}

/// Sorts ranges, and joins those that overlap or follow each other.
pub fn join_ranges(ranges: &mut Vec<ByteRange>) {
    ranges.sort_unstable();
    ranges.dedup_by(|later, earlier| {
        let is_joined = later.0 <= earlier.1;
        if is_joined {
            earlier.1 = earlier.1.max(later.1);
        }
        is_joined
    });
}
