//! Memory types: properties that a device offers, and kinds that a buffer requires.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Properties of a memory type (`VkMemoryPropertyFlagBits`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryProperties {
    /// `DEVICE_LOCAL`.
    pub device_local: bool,
    /// `HOST_VISIBLE`.
    pub host_visible: bool,
    /// `HOST_COHERENT`.
    pub host_coherent: bool,
    /// `HOST_CACHED`.
    pub host_cached: bool,
    /// `DEVICE_COHERENT_AMD`, with or without `DEVICE_UNCACHED_AMD`. Only kinds that require it match such a
    /// type.
    #[serde(default)]
    pub device_coherent: bool,
}

/// Required and forbidden properties of a memory type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryKind {
    /// Required properties.
    pub required: MemoryProperties,
    /// Forbidden properties.
    pub forbidden: MemoryProperties,
}

const NONE: MemoryProperties = MemoryProperties {
    device_local: false,
    host_visible: false,
    host_coherent: false,
    host_cached: false,
    device_coherent: false,
};
const VISIBLE: MemoryProperties = MemoryProperties { host_visible: true, ..NONE };
const LOCAL: MemoryProperties = MemoryProperties { device_local: true, ..NONE };
const COHERENT: MemoryProperties = MemoryProperties { host_coherent: true, ..NONE };

impl MemoryKind {
    /// The named kinds for tests.
    pub const NAMED: [(&str, MemoryKind); 7] = [
        ("local", MemoryKind { required: LOCAL, forbidden: NONE }),
        ("nonlocal", MemoryKind { required: NONE, forbidden: LOCAL }),
        ("visible", MemoryKind { required: VISIBLE, forbidden: NONE }),
        (
            "coherent",
            MemoryKind { required: MemoryProperties { host_coherent: true, ..VISIBLE }, forbidden: NONE },
        ),
        ("noncoherent", MemoryKind { required: VISIBLE, forbidden: COHERENT }),
        (
            "cached",
            MemoryKind { required: MemoryProperties { host_cached: true, ..VISIBLE }, forbidden: NONE },
        ),
        (
            "device-coherent",
            MemoryKind { required: MemoryProperties { device_coherent: true, ..NONE }, forbidden: NONE },
        ),
    ];

    /// Returns the kind of this name.
    pub fn from_name(word: &str) -> Option<MemoryKind> {
        MemoryKind::NAMED.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }

    /// Returns true if a memory type is of this kind.
    pub fn matches_type(&self, properties: MemoryProperties) -> bool {
        let flags = properties.named_flags().map(|(has, _)| has);
        let (with, without) = (self.required.named_flags(), self.forbidden.named_flags());
        properties.device_coherent == self.required.device_coherent
            && flags.iter().zip(with).all(|(has, (wanted, _))| *has || !wanted)
            && flags.iter().zip(without).all(|(has, (unwanted, _))| !*has || !unwanted)
    }
}

impl MemoryProperties {
    fn named_flags(self) -> [(bool, &'static str); 5] {
        [
            (self.device_local, "DEVICE_LOCAL"),
            (self.host_visible, "HOST_VISIBLE"),
            (self.host_coherent, "HOST_COHERENT"),
            (self.host_cached, "HOST_CACHED"),
            (self.device_coherent, "DEVICE_COHERENT_AMD"),
        ]
    }
}

/// Writes Vulkan's names of the properties, joined by ` | `.
impl fmt::Display for MemoryProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.named_flags().into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect();
        f.write_str(&names.join(" | "))
    }
}

/// Writes the kind as a missing capability: `memory type HOST_VISIBLE without HOST_COHERENT`.
impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory type")?;
        if self.required != NONE {
            write!(f, " {}", self.required)?;
        }
        if self.forbidden != NONE {
            write!(f, " without {}", self.forbidden)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_kinds_distinguish_memory_types() {
        let types = [
            LOCAL,
            MemoryProperties { host_visible: true, host_coherent: true, ..NONE },
            MemoryProperties { host_visible: true, host_cached: true, ..NONE },
            MemoryProperties {
                device_local: true,
                host_visible: true,
                host_coherent: true,
                host_cached: true,
                device_coherent: false,
            },
            MemoryProperties { device_coherent: true, host_coherent: true, ..VISIBLE },
        ];
        let found: Vec<(&str, Vec<usize>)> = MemoryKind::NAMED
            .iter()
            .map(|(word, kind)| (*word, (0..types.len()).filter(|i| kind.matches_type(types[*i])).collect()))
            .collect();
        let expected = [
            ("local", vec![0, 3]),
            ("nonlocal", vec![1, 2]),
            ("visible", vec![1, 2, 3]),
            ("coherent", vec![1, 3]),
            ("noncoherent", vec![2]),
            ("cached", vec![2, 3]),
            ("device-coherent", vec![4]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn missing_memory_is_named() {
        let lack = |word| MemoryKind::from_name(word).unwrap_or_default().to_string();
        assert_eq!(lack("nonlocal"), "memory type without DEVICE_LOCAL");
        assert_eq!(lack("noncoherent"), "memory type HOST_VISIBLE without HOST_COHERENT");
        assert_eq!(lack("cached"), "memory type HOST_VISIBLE | HOST_CACHED");
    }
}
