//! Access types (`VkAccessFlagBits2`).

use std::fmt;

/// A set of access types: those of dispatches, copies and the host.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AccessMask(u16);

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

impl AccessMask {
    /// No access: a pure execution dependency.
    pub const NONE: AccessMask = AccessMask(0);
    /// `VK_ACCESS_SHADER_READ_BIT`.
    pub const SHADER_READ: AccessMask = AccessMask(1);
    /// `VK_ACCESS_SHADER_WRITE_BIT`.
    pub const SHADER_WRITE: AccessMask = AccessMask(1 << 1);
    /// `VK_ACCESS_UNIFORM_READ_BIT`.
    pub const UNIFORM_READ: AccessMask = AccessMask(1 << 2);
    /// `VK_ACCESS_TRANSFER_READ_BIT`.
    pub const TRANSFER_READ: AccessMask = AccessMask(1 << 3);
    /// `VK_ACCESS_TRANSFER_WRITE_BIT`.
    pub const TRANSFER_WRITE: AccessMask = AccessMask(1 << 4);
    /// `VK_ACCESS_HOST_READ_BIT`.
    pub const HOST_READ: AccessMask = AccessMask(1 << 5);
    /// `VK_ACCESS_HOST_WRITE_BIT`.
    pub const HOST_WRITE: AccessMask = AccessMask(1 << 6);
    /// `VK_ACCESS_MEMORY_READ_BIT`: every read by the device.
    pub const MEMORY_READ: AccessMask = AccessMask(1 << 7);
    /// `VK_ACCESS_MEMORY_WRITE_BIT`: every write by the device.
    pub const MEMORY_WRITE: AccessMask = AccessMask(1 << 8);
    /// Accesses by shaders, except for those that [`AccessMask::MEMORY`] has too.
    pub const SHADERS: AccessMask =
        AccessMask::SHADER_READ.with(AccessMask::SHADER_WRITE).with(AccessMask::UNIFORM_READ);
    /// Accesses by copies and fills.
    pub const TRANSFERS: AccessMask = AccessMask::TRANSFER_READ.with(AccessMask::TRANSFER_WRITE);
    /// Accesses by the host.
    pub const HOST: AccessMask = AccessMask::HOST_READ.with(AccessMask::HOST_WRITE);
    /// Every access by the device.
    pub const MEMORY: AccessMask = AccessMask::MEMORY_READ.with(AccessMask::MEMORY_WRITE);

    /// Returns every single access type, in the order of their bits.
    pub fn single_accesses() -> impl Iterator<Item = AccessMask> {
        (0..NAMES.len()).map(|bit| AccessMask(1 << bit))
    }

    /// Returns the access type of a name, which is that of its flag in lower case.
    pub fn from_name(name: &str) -> Option<AccessMask> {
        NAMES.iter().position(|known| *known == name).map(|bit| AccessMask(1 << bit))
    }

    /// Returns the names of its members.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| name)
    }

    /// Returns the union.
    #[must_use]
    pub const fn with(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 | other.0)
    }

    /// Returns the members that are not in the other set.
    #[must_use]
    pub const fn without(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 & !other.0)
    }

    /// Returns the intersection.
    #[must_use]
    pub const fn intersection(self, other: AccessMask) -> AccessMask {
        AccessMask(self.0 & other.0)
    }

    /// Returns true if the sets have a member in common.
    pub const fn intersects(self, other: AccessMask) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if it has no member.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if it covers the reads or the writes of a shader or of a host thread.
    pub const fn covers_access(self, host: bool, write: bool) -> bool {
        self.intersects(match (host, write) {
            (false, false) => AccessMask::SHADER_READ.with(AccessMask::MEMORY_READ),
            (false, true) => AccessMask::SHADER_WRITE.with(AccessMask::MEMORY_WRITE),
            (true, false) => AccessMask::HOST_READ,
            (true, true) => AccessMask::HOST_WRITE,
        })
    }
}

/// Writes the names of its members, or `none`.
impl fmt::Display for AccessMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names().collect();
        f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(".") }.as_str())
    }
}

impl fmt::Debug for AccessMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
