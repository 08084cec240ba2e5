//! Synchronization scopes: what barriers and semaphores order after an earlier access.
//!
//! Execution dependency chains, availability and visibility operations of the Vulkan specification ("Synchronization and Cache Control",
//! 7.1 and 7.4 to 7.6). Masks that name several stages or accesses are expanded.

use std::collections::BTreeMap;

use crate::hazard::{AccessSide, ByteRange, MissingOrder, ResourceId};
use crate::journal::SyncScope;
use crate::timeline::SubpassId;

/// Pipeline stages (`VkPipelineStageFlagBits2`).
pub(crate) mod stage {
    pub const TOP: u64 = 1;
    pub const DRAW_INDIRECT: u64 = 1 << 1;
    pub const VERTEX_INPUT: u64 = 1 << 2;
    pub const COMPUTE: u64 = 1 << 11;
    pub const TRANSFER: u64 = 1 << 12;
    pub const BOTTOM: u64 = 1 << 13;
    pub const HOST: u64 = 1 << 14;
    pub const ALL_GRAPHICS: u64 = 1 << 15;
    pub const ALL: u64 = 1 << 16;
    /// A presentation, which a semaphore orders and a barrier does not: no bit of Vulkan.
    pub const PRESENTATION: u64 = 1 << 63;
    /// Copy, resolve, blit and clear.
    pub const TRANSFERS: u64 = 0xf << 32;
    /// Index and attribute input.
    pub const VERTEX_INPUTS: u64 = 3 << 36;
    pub const BEFORE_RASTERIZATION: u64 = 1 << 38;
    /// Vertex, tessellation, geometry, task and mesh shaders.
    pub const VERTEX_SHADERS: u64 = 0x78 | TASK_AND_MESH;
    pub const TASK_AND_MESH: u64 = 3 << 19;
    /// The stages of a draw, in their logical order.
    pub const GRAPHICS: [u64; 12] = [
        DRAW_INDIRECT,
        VERTEX_INPUT,
        1 << 19,
        1 << 20,
        1 << 3,
        1 << 4,
        1 << 5,
        1 << 6,
        1 << 8,
        1 << 7,
        1 << 9,
        1 << 10,
    ];
}

/// Accesses (`VkAccessFlagBits2`).
pub(crate) mod access {
    pub const INDIRECT_READ: u64 = 1;
    pub const UNIFORM_READ: u64 = 1 << 3;
    pub const INPUT_READ: u64 = 1 << 4;
    pub const SHADER_READ: u64 = 1 << 5;
    pub const SHADER_WRITE: u64 = 1 << 6;
    pub const HOST_READ: u64 = 1 << 13;
    pub const HOST_WRITE: u64 = 1 << 14;
    pub const MEMORY_READ: u64 = 1 << 15;
    pub const MEMORY_WRITE: u64 = 1 << 16;
    pub const STORAGE_WRITE: u64 = 1 << 34;
    /// Reads and writes of color, depth and stencil attachments.
    pub const ATTACHMENT: u64 = 0xf << 7;
    /// Reads of uniform buffers, samplers and storage.
    pub const SHADER_READS: u64 = 3 << 32 | 1 << 3;
    /// Every read and every write but those of shaders.
    pub const OTHER_READS: u64 = 0x2a9f;
    pub const OTHER_WRITES: u64 = 0x5500;
}

/// Memory in which accesses are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Location {
    /// Device memory, by its id.
    Memory(u64),
    /// A buffer whose memory is unknown.
    Buffer(u64),
    /// A part of an image.
    Subresource(u64, ImagePart),
    /// The release of a resource, by its command. It has no bytes.
    Release(usize),
}

/// An aspect of a level and layer of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ImagePart {
    pub level: u32,
    pub layer: u32,
    /// One bit of `VkImageAspectFlags`.
    pub aspect: u32,
}

/// The commands of a queue that a scope has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandSet {
    pub queue: u64,
    pub part: QueuePart,
}

/// A part of the commands of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePart {
    All,
    /// Those of a subpass, to which a barrier in it and a dependency of its render pass are restricted.
    Subpass(SubpassId),
    /// Those outside of a render pass, by its number.
    Outside(usize),
}

impl CommandSet {
    /// Returns the set of all commands of a queue.
    pub fn all_of(queue: u64) -> CommandSet {
        CommandSet { queue, part: QueuePart::All }
    }

    fn contains(&self, queue: u64, subpass: Option<SubpassId>) -> bool {
        queue == self.queue
            && match self.part {
                QueuePart::All => true,
                QueuePart::Subpass(id) => subpass == Some(id),
                QueuePart::Outside(pass) => subpass.is_none_or(|id| id.pass != pass),
            }
    }

    /// Returns the subpass; none for what is not restricted to one.
    fn subpass(&self) -> Option<SubpassId> {
        match self.part {
            QueuePart::Subpass(id) => Some(id),
            QueuePart::All | QueuePart::Outside(_) => None,
        }
    }
}

/// The part that an access to an attachment has in rasterization order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachmentRole {
    /// A load or a store operation, which is ordered with all accesses through attachments in its subpass.
    Operation,
    /// An access of a draw or of a clear in rasterization order.
    Ordered,
    /// A read of an input attachment, which only operations are ordered with.
    Input,
}

/// An access of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub command: usize,
    pub queue: u64,
    pub subpass: Option<SubpassId>,
    /// The role of an access through an attachment.
    pub role: Option<AttachmentRole>,
    pub location: Location,
    pub resource: ResourceId,
    /// Offset of the resource in its location.
    pub base: u64,
    pub range: ByteRange,
    pub kind: AccessSide,
    pub is_write: bool,
    /// True if the command may make it and need not.
    pub is_possible: bool,
}

/// Stages of a queue, in one subpass or in all of its commands.
type OrderedStages = BTreeMap<(u64, Option<SubpassId>), u64>;

impl Access {
    /// Returns true if rasterization order, or that of load and store operations, orders two accesses of a subpass.
    pub fn is_ordered_in_subpass(&self, other: &Access) -> bool {
        let roles = self.role.zip(other.role);
        self.subpass.is_some()
            && self.subpass == other.subpass
            && roles.is_some_and(|roles| match roles {
                (AttachmentRole::Operation, _) | (_, AttachmentRole::Operation) => true,
                (one, two) => one == AttachmentRole::Ordered && two == AttachmentRole::Ordered,
            })
    }

    /// Returns the first byte in its location, and the one after the last.
    pub fn bytes(&self) -> ByteRange {
        (self.base.saturating_add(self.range.0), self.base.saturating_add(self.range.1))
    }
}

/// An earlier access, and what is ordered after it.
#[derive(Clone, Debug)]
pub(crate) struct PriorAccess {
    pub access: Access,
    pub is_available: bool,
    /// The stages of each queue, or of one subpass there, that are ordered after it.
    ordered: OrderedStages,
    /// The stages of each queue in earlier render passes that are. A chain may lead from them.
    chained: BTreeMap<u64, u64>,
    /// The commands, stages and accesses to which the write is visible.
    visible: Vec<VisibleScope>,
    /// True until the host signals an event that the access waits for.
    pub is_held: bool,
}

/// Commands to which a write is visible, with their stages and accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VisibleScope {
    queue: u64,
    subpass: Option<SubpassId>,
    scope: SyncScope,
}

/// Adds the stages that a combined stage stands for.
pub(crate) fn expand_stages(mask: u64) -> u64 {
    let graphics = stage::GRAPHICS.iter().fold(0, |all, stage| all | stage);
    let parts = [
        (stage::ALL, !0),
        (stage::TRANSFER, stage::TRANSFERS),
        (stage::ALL_GRAPHICS, graphics),
        (stage::VERTEX_INPUTS, stage::VERTEX_INPUT),
        (stage::BEFORE_RASTERIZATION, stage::VERTEX_SHADERS),
    ];
    parts.iter().filter(|(combined, _)| mask & combined != 0).fold(mask, |all, (_, parts)| all | parts)
}

/// Returns the stages of a first scope: with those that are logically earlier.
pub(crate) fn first_scope_stages(mask: u64) -> u64 {
    let all = if mask & stage::BOTTOM != 0 { !0 } else { expand_stages(mask) };
    let last = stage::GRAPHICS.iter().rposition(|stage| all & stage != 0);
    let earlier =
        stage::GRAPHICS.iter().take(last.map_or(0, |last| last + 1)).fold(0, |all, stage| all | stage);
    let indirect = if all & stage::COMPUTE != 0 { stage::DRAW_INDIRECT } else { 0 };
    all | earlier | indirect
}

/// Returns the stages of a second scope: with those that are logically later.
pub(crate) fn second_scope_stages(mask: u64) -> u64 {
    let all = if mask & stage::TOP != 0 { !0 } else { expand_stages(mask) };
    let first = stage::GRAPHICS.iter().position(|stage| all & stage != 0);
    let later = stage::GRAPHICS.iter().skip(first.unwrap_or(usize::MAX)).fold(0, |all, stage| all | stage);
    let compute = if all & stage::DRAW_INDIRECT != 0 { stage::COMPUTE } else { 0 };
    (all | later | compute) & !stage::PRESENTATION
}

/// Adds the accesses that a combined access stands for.
pub(crate) fn expand_accesses(mask: u64) -> u64 {
    let mut all = mask;
    if mask & access::MEMORY_READ != 0 {
        all |= access::OTHER_READS | access::SHADER_READ;
    }
    if mask & access::MEMORY_WRITE != 0 {
        all |= access::OTHER_WRITES | access::SHADER_WRITE;
    }
    if all & access::SHADER_READ != 0 {
        all |= access::SHADER_READS;
    }
    if all & access::SHADER_WRITE != 0 {
        all |= access::STORAGE_WRITE;
    }
    all
}

impl PriorAccess {
    /// Returns an access that nothing is ordered after.
    pub fn new(access: Access) -> PriorAccess {
        PriorAccess {
            access,
            is_available: false,
            ordered: BTreeMap::new(),
            chained: BTreeMap::new(),
            visible: Vec::new(),
            is_held: false,
        }
    }

    /// Returns true if the access is in the first execution scope of a dependency, or is ordered before it by a chain.
    pub fn is_in_first_scope(&self, first: CommandSet, stages: u64) -> bool {
        let stages = first_scope_stages(stages);
        // A layout transition has no stage: the scope of every command has it.
        let is_own = self.access.kind.stage & stages != 0 || (self.access.kind.stage == 0 && stages == !0);
        let is_chained = |((queue, subpass), ordered): (&(u64, Option<SubpassId>), &u64)| {
            let is_in_set = match subpass {
                Some(_) => first.contains(*queue, *subpass),
                // What is ordered before all later commands is before those of the set.
                None => *queue == first.queue,
            };
            is_in_set && ordered & stages != 0
        };
        let is_earlier = |queue: &u64| self.chained.get(queue).is_some_and(|ordered| ordered & stages != 0);
        (first.contains(self.access.queue, self.access.subpass) && is_own)
            || self.ordered.iter().any(is_chained)
            || (first.subpass().is_none() && is_earlier(&first.queue))
    }

    /// Extends the order by a dependency between the scopes of two sets of commands.
    pub fn add_dependency(&mut self, [first, second]: [CommandSet; 2], from: SyncScope, to: SyncScope) {
        if !self.is_in_first_scope(first, from.0) {
            return;
        }
        self.order_before(second, second_scope_stages(to.0));
        let is_in_access_scope = first.contains(self.access.queue, self.access.subpass)
            && self.access.kind.stage & expand_stages(from.0) != 0
            && self.access.kind.access & expand_accesses(from.1) != 0;
        self.is_available |= self.access.is_write && is_in_access_scope;
        if self.is_available {
            self.make_visible(second, to);
        }
    }

    /// Orders stages of later commands after the access.
    pub fn order_before(&mut self, second: CommandSet, stages: u64) {
        if let Some(subpass) = second.subpass() {
            // The scopes in earlier render passes order no later command, but chains may lead from them.
            let is_earlier = |of: u64, id: Option<SubpassId>| {
                of == second.queue && id.is_some_and(|id| id.pass != subpass.pass)
            };
            self.ordered.retain(|(queue, id), stages| {
                let is_earlier = is_earlier(*queue, *id);
                if is_earlier {
                    *self.chained.entry(*queue).or_default() |= *stages;
                }
                !is_earlier
            });
            self.visible.retain(|scope| !is_earlier(scope.queue, scope.subpass));
        }
        *self.ordered.entry((second.queue, second.subpass())).or_default() |= stages;
    }

    /// Makes the write visible to the second access scope of a dependency.
    pub fn make_visible(&mut self, second: CommandSet, to: SyncScope) {
        let scope = SyncScope(expand_stages(to.0), expand_accesses(to.1));
        let visible = VisibleScope { queue: second.queue, subpass: second.subpass(), scope };
        if scope.1 != 0 && !self.visible.contains(&visible) {
            self.visible.push(visible);
        }
    }

    /// Extends the order by a wait for a semaphore, whose signal makes all writes available.
    ///
    /// The second access scope has every access, whatever the stages ("Semaphore Waiting").
    pub fn add_wait(&mut self, queue: u64, stages: u64) {
        self.is_available |= self.access.is_write;
        let presentation = if stages & stage::ALL != 0 { stage::PRESENTATION } else { 0 };
        self.order_before(CommandSet::all_of(queue), second_scope_stages(stages) | presentation);
        self.make_visible(CommandSet::all_of(queue), SyncScope(!0, !0));
    }

    /// Returns true if anything on a queue is ordered after it.
    pub fn is_ordered_on(&self, queue: u64) -> bool {
        self.ordered.keys().any(|(of, _)| *of == queue)
    }

    /// Returns true if a barrier makes the write visible to the host.
    pub fn is_visible_to_host(&self) -> bool {
        let is_host = |visible: &VisibleScope| {
            visible.scope.0 & stage::HOST != 0 && visible.scope.1 & access::HOST_READ != 0
        };
        self.visible.iter().any(is_host)
    }

    /// Returns what a conflicting later access lacks.
    pub fn missing_order(&self, later: &Access) -> Option<MissingOrder> {
        if self.access.is_ordered_in_subpass(later) {
            return None;
        }
        let is_covered = |queue: u64, subpass: Option<SubpassId>| {
            queue == later.queue && (subpass.is_none() || subpass == later.subpass)
        };
        let ordered = self
            .ordered
            .iter()
            .any(|((queue, subpass), stages)| is_covered(*queue, *subpass) && stages & later.kind.stage != 0);
        let is_visible = || {
            self.visible.iter().any(|VisibleScope { queue, subpass, scope }| {
                is_covered(*queue, *subpass)
                    && scope.0 & later.kind.stage != 0
                    && scope.1 & later.kind.access != 0
            })
        };
        if !ordered {
            return Some(MissingOrder::Execution);
        }
        if self.access.is_write && !self.is_available {
            return Some(MissingOrder::Availability);
        }
        let needs_contents = self.access.is_write && !later.is_write;
        (needs_contents && !is_visible()).then_some(MissingOrder::Visibility)
    }
}
