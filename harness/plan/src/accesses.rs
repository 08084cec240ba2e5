//! Access types, as in the access masks of a dependency.

use std::fmt;

/// A set of access types: the `VkAccessFlags` that dispatches, copies and the host use.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Accesses(u16);

/// Names of the access types: bit i is name i.
const NAMES: [&str; 9] = [
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

impl Accesses {
    /// No access.
    pub const NONE: Accesses = Accesses(0);
    /// `VK_ACCESS_SHADER_READ_BIT`.
    pub const SHADER_READ: Accesses = Accesses(1);
    /// `VK_ACCESS_SHADER_WRITE_BIT`.
    pub const SHADER_WRITE: Accesses = Accesses(1 << 1);
    /// `VK_ACCESS_UNIFORM_READ_BIT`.
    pub const UNIFORM_READ: Accesses = Accesses(1 << 2);
    /// `VK_ACCESS_TRANSFER_READ_BIT`.
    pub const TRANSFER_READ: Accesses = Accesses(1 << 3);
    /// `VK_ACCESS_TRANSFER_WRITE_BIT`.
    pub const TRANSFER_WRITE: Accesses = Accesses(1 << 4);
    /// `VK_ACCESS_HOST_READ_BIT`.
    pub const HOST_READ: Accesses = Accesses(1 << 5);
    /// `VK_ACCESS_HOST_WRITE_BIT`.
    pub const HOST_WRITE: Accesses = Accesses(1 << 6);
    /// `VK_ACCESS_MEMORY_READ_BIT`: every read by the device.
    pub const MEMORY_READ: Accesses = Accesses(1 << 7);
    /// `VK_ACCESS_MEMORY_WRITE_BIT`: every write by the device.
    pub const MEMORY_WRITE: Accesses = Accesses(1 << 8);
    /// Both accesses of the host.
    pub const HOST: Accesses = Accesses::HOST_READ.with(Accesses::HOST_WRITE);

    /// Returns every single access type.
    pub fn single_accesses() -> impl Iterator<Item = Accesses> {
        (0..NAMES.len()).map(|bit| Accesses(1 << bit))
    }

    /// Returns the union.
    #[must_use]
    pub const fn with(self, other: Accesses) -> Accesses {
        Accesses(self.0 | other.0)
    }

    /// Returns true if the sets have a member in common.
    pub const fn intersects(self, other: Accesses) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if it has no member.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if it covers reads by kernels.
    pub const fn covers_reads(self) -> bool {
        self.intersects(Accesses::SHADER_READ.with(Accesses::MEMORY_READ))
    }

    /// Returns true if it covers writes by kernels.
    pub const fn covers_writes(self) -> bool {
        self.intersects(Accesses::SHADER_WRITE.with(Accesses::MEMORY_WRITE))
    }

    /// Returns the names of its members.
    pub fn member_names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| name)
    }
}

/// Writes the names of its members, or `none`.
impl fmt::Display for Accesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.member_names().collect();
        f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(".") }.as_str())
    }
}

impl fmt::Debug for Accesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
