//! Pipeline stages (`VkPipelineStageFlagBits2`).

use crate::AccessMask;

/// A set of pipeline stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StageMask(u16);

/// Names of the stages: bit i is name i.
const NAMES: [&str; 10] =
    ["compute", "vertex", "fragment", "transfer", "host", "all", "top", "bottom", "mesh", "task"];

impl StageMask {
    /// No stage.
    pub const NONE: StageMask = StageMask(0);
    /// Compute shaders.
    pub const COMPUTE: StageMask = StageMask(1);
    /// Vertex shaders.
    pub const VERTEX: StageMask = StageMask(1 << 1);
    /// Fragment shaders.
    pub const FRAGMENT: StageMask = StageMask(1 << 2);
    /// Copies and fills.
    pub const TRANSFER: StageMask = StageMask(1 << 3);
    /// The host.
    pub const HOST: StageMask = StageMask(1 << 4);
    /// `ALL_COMMANDS`; the host is not among them.
    pub const ALL: StageMask = StageMask(1 << 5);
    /// `TOP_OF_PIPE`.
    pub const TOP: StageMask = StageMask(1 << 6);
    /// `BOTTOM_OF_PIPE`.
    pub const BOTTOM: StageMask = StageMask(1 << 7);
    /// Mesh shaders.
    pub const MESH: StageMask = StageMask(1 << 8);
    /// Task shaders.
    pub const TASK: StageMask = StageMask(1 << 9);
    const GRAPHICS: StageMask =
        StageMask::VERTEX.with(StageMask::FRAGMENT).with(StageMask::MESH).with(StageMask::TASK);
    const SHADERS: StageMask = StageMask::COMPUTE.with(StageMask::GRAPHICS);
    const COMMANDS: StageMask = StageMask::TRANSFER.with(StageMask::SHADERS);

    /// Returns the stage of a name; `none` has no stage.
    pub fn from_name(name: &str) -> Option<StageMask> {
        let bit = NAMES.iter().position(|known| *known == name).map(|bit| StageMask(1 << bit));
        bit.or((name == "none").then_some(StageMask::NONE))
    }

    /// Returns the names of its members.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| name)
    }

    /// Returns the stages that make these accesses outside of shaders.
    pub fn for_accesses(accesses: AccessMask) -> StageMask {
        let kinds = [
            (AccessMask::TRANSFERS, StageMask::TRANSFER),
            (AccessMask::HOST, StageMask::HOST),
            (AccessMask::MEMORY, StageMask::ALL),
        ];
        let named = kinds.into_iter().filter(|(kind, _)| accesses.intersects(*kind));
        named.fold(StageMask::NONE, |all, (_, stage)| all.with(stage))
    }

    /// Returns true if these stages support all the accesses (VUID-VkMemoryBarrier2-srcAccessMask-03900 to
    /// 03917).
    pub const fn supports_accesses(self, accesses: AccessMask) -> bool {
        (!accesses.intersects(AccessMask::SHADERS)
            || self.intersects(StageMask::SHADERS.with(StageMask::ALL)))
            && (!accesses.intersects(AccessMask::TRANSFERS)
                || self.intersects(StageMask::TRANSFER.with(StageMask::ALL)))
            && (!accesses.intersects(AccessMask::HOST) || self.intersects(StageMask::HOST))
    }

    /// Returns the stages of a first synchronization scope, including logically earlier ones
    /// (`#synchronization-dependencies-scopes`).
    #[must_use]
    pub const fn to_first_scope(self) -> StageMask {
        self.named_stages()
            .with(StageMask::GRAPHICS.if_intersecting(self, StageMask::FRAGMENT))
            .with(StageMask::TASK.if_intersecting(self, StageMask::MESH))
            .with(StageMask::COMMANDS.if_intersecting(self, StageMask::ALL.with(StageMask::BOTTOM)))
    }

    /// Returns the stages of a second synchronization scope, including logically later ones.
    #[must_use]
    pub const fn to_second_scope(self) -> StageMask {
        let before_fragments = StageMask::VERTEX.with(StageMask::MESH).with(StageMask::TASK);
        self.named_stages()
            .with(StageMask::FRAGMENT.if_intersecting(self, before_fragments))
            .with(StageMask::MESH.if_intersecting(self, StageMask::TASK))
            .with(StageMask::COMMANDS.if_intersecting(self, StageMask::ALL.with(StageMask::TOP)))
    }

    /// Returns this set if two other sets intersect, else the empty set.
    const fn if_intersecting(self, set: StageMask, other: StageMask) -> StageMask {
        if set.intersects(other) { self } else { StageMask::NONE }
    }

    /// Returns the stages of commands and of the host.
    const fn named_stages(self) -> StageMask {
        self.intersection(StageMask::COMMANDS.with(StageMask::HOST))
    }

    /// Returns the graphics shader stages in the set.
    #[must_use]
    pub const fn graphics_stages(self) -> StageMask {
        self.intersection(StageMask::GRAPHICS)
    }

    /// Returns the union.
    #[must_use]
    pub const fn with(self, other: StageMask) -> StageMask {
        StageMask(self.0 | other.0)
    }

    /// Returns the intersection.
    #[must_use]
    pub const fn intersection(self, other: StageMask) -> StageMask {
        StageMask(self.0 & other.0)
    }

    /// Returns true if the sets have a member in common.
    pub const fn intersects(self, other: StageMask) -> bool {
        self.0 & other.0 != 0
    }
}
