//! AMD GPU families by name, and the generation of their machine code.

use std::fmt;
use std::str::FromStr;

use vendor::radv;

/// A generation of the instruction set, with its counters, bits and caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Southern Islands.
    Gfx6,
    /// Sea Islands.
    Gfx7,
    /// Volcanic Islands and Polaris.
    Gfx8,
    /// Vega, and the first compute chip after it.
    Gfx9,
    /// Compute chips with several second-level caches (gfx90a, gfx94x, gfx950). Their text is parsed, but
    /// their memory system is not modelled.
    Gfx940,
    /// RDNA 1 and 2.
    Gfx10,
    /// RDNA 3.
    Gfx11,
    /// RDNA 4.
    Gfx12,
}

impl Generation {
    /// Every generation, oldest first.
    pub const ALL: [Generation; 8] = [
        Generation::Gfx6,
        Generation::Gfx7,
        Generation::Gfx8,
        Generation::Gfx9,
        Generation::Gfx940,
        Generation::Gfx10,
        Generation::Gfx11,
        Generation::Gfx12,
    ];

    /// Returns the word in tables and reports.
    pub fn name(self) -> &'static str {
        match self {
            Generation::Gfx6 => "gfx6",
            Generation::Gfx7 => "gfx7",
            Generation::Gfx8 => "gfx8",
            Generation::Gfx9 => "gfx9",
            Generation::Gfx940 => "gfx940",
            Generation::Gfx10 => "gfx10",
            Generation::Gfx11 => "gfx11",
            Generation::Gfx12 => "gfx12",
        }
    }

    /// Returns true if stores have a separate counter (`vscnt`, `storecnt`).
    pub fn has_store_counter(self) -> bool {
        self >= Generation::Gfx10
    }

    /// Returns true if waves of one workgroup may run on different compute units (WGP mode, which RADV uses for compute).
    pub fn has_wgp_mode(self) -> bool {
        self >= Generation::Gfx10
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A chip family by a driver's name: `navi31`, `gfx1201`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AmdFamily {
    name: String,
    generation: Generation,
}

/// An unknown family name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown AMD family `{name}`; expected one of {} or gfxNNN", radv().families.iter().map(|family| family.name.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownFamily {
    pub name: String,
}

impl AmdFamily {
    /// Returns the name in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }
}

impl FromStr for AmdFamily {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<AmdFamily, UnknownFamily> {
        let name = text.trim().to_ascii_lowercase();
        let target = radv().find_family(&name).map_or(name.as_str(), |family| &family.target);
        match parse_target(target) {
            Some(generation) => Ok(AmdFamily { name, generation }),
            None => Err(UnknownFamily { name: text.to_owned() }),
        }
    }
}

impl fmt::Display for AmdFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Parses `gfx1103_r1` and similar: the last two digits are stepping and version, the others the generation.
fn parse_target(name: &str) -> Option<Generation> {
    let digits = name.strip_prefix("gfx")?;
    let digits = digits.split('_').next()?;
    if !(3..=4).contains(&digits.len()) || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let (major, minor) = digits.split_at(digits.len() - 2);
    match (major, minor) {
        ("6", _) => Some(Generation::Gfx6),
        ("7", _) => Some(Generation::Gfx7),
        ("8", _) => Some(Generation::Gfx8),
        ("9", "0a" | "40" | "41" | "42" | "50") => Some(Generation::Gfx940),
        ("9", _) => Some(Generation::Gfx9),
        ("10", _) => Some(Generation::Gfx10),
        ("11", _) => Some(Generation::Gfx11),
        ("12", _) => Some(Generation::Gfx12),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for family in &radv().families {
            assert!(family.all_names().all(|name| name.parse::<AmdFamily>().is_ok()), "{family:?}");
        }
        for (name, generation) in [
            ("tahiti", Generation::Gfx6),
            ("kabini", Generation::Gfx7),
            ("stoney", Generation::Gfx8),
            ("arcturus", Generation::Gfx9),
            ("mi200", Generation::Gfx940),
            ("vangogh", Generation::Gfx10),
            ("raphael", Generation::Gfx10),
            ("phoenix2", Generation::Gfx11),
            ("gfx1153", Generation::Gfx11),
            ("gfx600", Generation::Gfx6),
            ("gfx803", Generation::Gfx8),
            ("gfx90c", Generation::Gfx9),
            ("gfx942", Generation::Gfx940),
            ("GFX1036", Generation::Gfx10),
            ("gfx1103_r1", Generation::Gfx11),
            ("gfx1201", Generation::Gfx12),
        ] {
            assert_eq!(name.parse::<AmdFamily>().unwrap().generation(), generation, "{name}");
        }
        for name in ["", "gfx", "gfx12", "gfx1400", "navi99", "gfxé00", "gfx10é"] {
            assert!(name.parse::<AmdFamily>().is_err(), "{name}");
        }
    }
}
