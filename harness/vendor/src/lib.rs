//! GPU vendors as plain data: drivers that compile without hardware, their chips, and the dialect of their
//! machine code.
//!
//! Each vendor has one file, and [`VENDORS`] lists them. The crates `device` (starts drivers), `codegen`
//! (reads their text) and `isa` (explores it) use this data.
//!
//! ```
//! let (vendor, chip) = vendor::of_device("AMD Radeon RX 6800 (RADV NAVI21)").unwrap();
//! assert_eq!((vendor.word, chip.name, chip.target), ("radv", "navi21", "gfx1030"));
//! ```

pub mod amd;
pub mod apple;
pub mod arm;
pub mod broadcom;
pub mod intel;
pub mod nvidia;
pub mod order;
pub mod qualcomm;
pub mod text;

pub use text::DisassemblerDialect;

/// A vendor's driver.
#[derive(Debug)]
pub struct Vendor {
    /// The prefix of selectors of its compile-only devices, before a colon: `radv`.
    pub word: &'static str,
    /// The name of the driver for people.
    pub driver: &'static str,
    /// Its `VkDriverId`, also of real devices.
    pub driver_id: i32,
    /// The prefix of the names of its driver files.
    pub driver_file: &'static str,
    /// The library name if a driver file names none that exists.
    pub library: &'static str,
    /// The methods of compiling for absent hardware; the first supported one is used.
    pub ways: &'static [CompileMethod],
    /// How to install the driver and the shim.
    pub install: &'static str,
    /// Additional environment variables. Caches are disabled because they would hide crashes and times.
    pub settings: &'static [(&'static str, &'static str)],
    /// A variable with a list of words, and the word to add to it.
    pub debug_word: Option<(&'static str, &'static str)>,
    /// The source of the machine text.
    pub text_from: TextSource,
    /// The text before the chip in device names, if they contain it: `(RADV ` of `… (RADV NAVI31)`.
    pub before_chip: Option<&'static str>,
    /// The chips of all driver versions, oldest first.
    pub families: &'static [ChipFamily],
    /// The dialect of its machine code.
    pub dialect: &'static DisassemblerDialect,
    /// The descriptor layout, if the explorer supports the code.
    pub descriptors: Option<Descriptors>,
}

impl Vendor {
    /// Returns true if its compiler accepts split barriers of `SPV_INTEL_split_barrier`, by the driver
    /// version.
    ///
    /// All drivers here are Mesa's, which share the SPIR-V reader: 26.2.6 accepts them, 25.0.7 does not.
    pub fn takes_intel_split_barriers(&self, driver_info: &str) -> bool {
        let version = driver_info.strip_prefix("Mesa ").unwrap_or_default();
        let mut numbers = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
        (major, minor) >= (26, 2)
    }
}

/// A method of compiling for absent hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileMethod {
    /// A back end of the driver without hardware.
    NullBackEnd {
        /// The environment variable that selects the chip.
        variable: &'static str,
        /// A string in the library that proves that it has this back end.
        sign: &'static str,
    },
    /// A preloaded library that replaces the kernel device (Mesa's drm-shim).
    Shim {
        /// The library.
        library: &'static str,
        /// The environment variable that selects the chip; a shim without one simulates a single chip.
        variable: Option<&'static str>,
        /// True if the library contains the names of its chips.
        names_chips: bool,
    },
}

/// The source of a driver's machine text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// `VK_KHR_pipeline_executable_properties`.
    Properties,
    /// Standard output during pipeline creation, shader after shader: NIR, then code.
    StandardOutput {
        /// The prefix of the line with the name of a shader's stage.
        shader: &'static str,
        /// The prefix of the line where the code begins.
        code: &'static str,
    },
}

impl TextSource {
    /// Returns the named code forms of a stage's shader (`COMPUTE`, `VERTEX`, `FRAGMENT`) in a driver's
    /// standard output.
    pub fn code_forms<'o>(self, output: &'o str, stage: &str) -> Vec<(&'static str, &'o str)> {
        let TextSource::StandardOutput { shader, code } = self else { return Vec::new() };
        let lines = |text: &str, start: &str| {
            let begins = |at: &usize| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
            text.match_indices(start).map(|(at, _)| at).filter(begins).collect::<Vec<usize>>()
        };
        let shaders = lines(output, shader);
        let is_of_stage = |at: &usize| {
            let line = output.get(at + shader.len()..).and_then(|rest| rest.lines().next());
            line.is_some_and(|name| name.trim() == stage)
        };
        let begin = shaders.iter().copied().rfind(is_of_stage).unwrap_or_default();
        let end = shaders.iter().copied().find(|at| *at > begin).unwrap_or(output.len());
        let output = output.get(begin..end).unwrap_or_default();
        let at = lines(output, code).first().copied().unwrap_or(output.len());
        let (nir, code) = output.split_at(at);
        [("NIR", nir), ("Assembly", code)].into_iter().filter(|(_, text)| !text.trim().is_empty()).collect()
    }
}

/// A family of chips with its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipFamily {
    /// Its name in selectors: the latest driver's name in lower case, unique among all vendors.
    pub name: &'static str,
    /// Other names, those of earlier drivers first.
    pub others: &'static [&'static str],
    /// The compiler target of its code: `gfx1030`.
    pub target: &'static str,
    /// The value of a shim's variable.
    pub shim: &'static str,
}

/// Creates a family with one name, which shims accept, too.
pub(crate) const fn single_name_family(name: &'static str, target: &'static str) -> ChipFamily {
    ChipFamily { name, others: &[], target, shim: name }
}

/// Creates a family with a numeric code for shims.
pub(crate) const fn coded_family(
    name: &'static str,
    others: &'static [&'static str],
    target: &'static str,
    shim: &'static str,
) -> ChipFamily {
    ChipFamily { name, others, target, shim }
}

/// The sizes of descriptors in a set, which are also their alignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// The size of a buffer or texel buffer descriptor.
    pub buffer_bytes: u32,
    /// The size of an image descriptor.
    pub image_bytes: u32,
}

/// Every vendor.
pub const VENDORS: &[&Vendor] = &[
    &amd::RADV,
    &nvidia::NVK,
    &intel::ANV,
    &intel::HASVK,
    &qualcomm::TURNIP,
    &apple::HONEYKRISP,
    &arm::PANVK,
    &broadcom::V3DV,
];

/// The variable that selects the compile-only device of a process: `nvk:ga102`.
///
/// Devices on a shim look like hardware, and not all have a chip in their name.
pub const CHOSEN_VARIABLE: &str = "VK_LITMUS_COMPILE_ONLY";

impl PartialEq for Vendor {
    fn eq(&self, other: &Vendor) -> bool {
        self.word == other.word
    }
}

impl Eq for Vendor {}

impl Vendor {
    /// Returns the family with a name, its own or another one; case-insensitive.
    pub fn find_family(&self, name: &str) -> Option<&'static ChipFamily> {
        self.families.iter().find(|family| family.all_names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Returns the chip in a device name, in lower case; it may be missing in our list.
    pub fn chip_of(&self, device_name: &str) -> Option<String> {
        let (_, behind) = device_name.split_once(self.before_chip?)?;
        let chip = behind.split([')', ' ']).next().filter(|chip| !chip.is_empty())?;
        Some(chip.to_lowercase())
    }
}

impl ChipFamily {
    /// Returns all its names, its own first.
    pub fn all_names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.others.iter().copied())
    }

    /// Returns the family of any vendor with a name; case-insensitive.
    pub fn find_by_name(name: &str) -> Option<&'static ChipFamily> {
        VENDORS.iter().find_map(|vendor| vendor.find_family(name))
    }

    /// Returns its vendor.
    pub fn find_vendor(&self) -> Option<&'static Vendor> {
        VENDORS.iter().copied().find(|vendor| vendor.families.contains(self))
    }
}

/// Returns the vendor and the family of a device by its driver's device name.
pub fn of_device(device_name: &str) -> Option<(&'static Vendor, &'static ChipFamily)> {
    VENDORS.iter().find_map(|vendor| Some((*vendor, vendor.find_family(&vendor.chip_of(device_name)?)?)))
}

/// Returns the name of a compile-only device by its driver's device name: `radv:navi31`.
pub fn name_of(device_name: &str) -> Option<String> {
    VENDORS.iter().find_map(|vendor| {
        let chip = vendor.chip_of(device_name)?;
        let name = vendor.find_family(&chip).map_or(chip.as_str(), |family| family.name);
        Some(format!("{}:{name}", vendor.word))
    })
}

/// Returns the vendor of a device, and its family if known.
///
/// It is identified by the name of a compile-only device (`nvk:ga102`), by its driver's device name, or by
/// its `VkDriverId`.
pub fn of_identity(
    name: &str,
    device_name: &str,
    driver_id: i32,
) -> Option<(&'static Vendor, Option<&'static ChipFamily>)> {
    if let Some((vendor, chip)) = of_selector(name) {
        return Some((vendor, vendor.find_family(chip)));
    }
    if let Some((vendor, family)) = of_device(device_name) {
        return Some((vendor, Some(family)));
    }
    VENDORS.iter().find(|vendor| vendor.driver_id == driver_id).map(|vendor| (*vendor, None))
}

/// Returns the vendor that a selector names, and the text after the colon.
pub fn of_selector(text: &str) -> Option<(&'static Vendor, &str)> {
    let (word, rest) = text.split_once(':')?;
    let vendor = VENDORS.iter().find(|vendor| vendor.word.eq_ignore_ascii_case(word))?;
    Some((vendor, rest))
}

/// Returns the vendor of a driver file name.
pub fn of_driver_file(name: &str) -> Option<&'static Vendor> {
    // `radeon_icd.json`, `radeon_icd.x86_64.json`.
    let is_its = |vendor: &&Vendor| {
        name.strip_prefix(vendor.driver_file)
            .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".json"))
    };
    VENDORS.iter().copied().find(is_its)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_by_all_their_names() {
        let name = |text| ChipFamily::find_by_name(text).map(|family| family.name);
        assert_eq!(name("NAVI31"), Some("navi31"));
        assert_eq!(name("gfx1100"), Some("navi31"));
        assert_eq!(name("raphael"), Some("raphael_mendocino"));
        assert_eq!(name("bogus"), None);
    }

    #[test]
    fn every_name_selects_one_family_of_one_vendor() {
        let families = || VENDORS.iter().flat_map(|vendor| vendor.families);
        let names: Vec<&str> = families().flat_map(ChipFamily::all_names).collect();
        let mut once: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
        for vendor in VENDORS {
            assert!(
                vendor
                    .families
                    .iter()
                    .all(|family| family.find_vendor().map(|v| v.word) == Some(vendor.word))
            );
            assert_eq!(
                of_selector(&format!("{}:*", vendor.word)).map(|(v, rest)| (v.word, rest)),
                Some((vendor.word, "*"))
            );
            assert!(of_driver_file(&format!("{}.json", vendor.driver_file)).is_some());
        }
    }

    #[test]
    fn compile_only_devices_are_named_after_their_family() {
        assert_eq!(name_of("Null hardware (RADV GFX1100)").as_deref(), Some("radv:navi31"));
        // With another back end.
        assert_eq!(name_of("Null hardware (RADV VEGA10 (LLVM 19.1.7))").as_deref(), Some("radv:vega10"));
        // A chip that is not in our list.
        assert_eq!(name_of("Null hardware (RADV GFX1300)").as_deref(), Some("radv:gfx1300"));
        assert!(of_device("llvmpipe").is_none());
    }

    #[test]
    fn devices_have_the_dialect_of_their_vendor() {
        let of = |name, device, id| {
            of_identity(name, device, id)
                .map(|(vendor, family)| (vendor.word, family.map(|family| family.name)))
        };
        assert_eq!(of("nvk:ga102", "NVK ", 24), Some(("nvk", Some("ga102"))));
        assert_eq!(
            of("NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 (NVK GA102)", 24),
            Some(("nvk", None))
        );
        assert_eq!(of("x", "AMD Radeon RX 6800 (RADV NAVI21)", 3), Some(("radv", Some("navi21"))));
        assert_eq!(of("lavapipe", "llvmpipe (LLVM 15)", 13), None);
        assert_eq!(of_driver_file("intel_hasvk_icd.x86_64.json").map(|vendor| vendor.word), Some("hasvk"));
        assert_eq!(of_driver_file("intel_icd.x86_64.json").map(|vendor| vendor.word), Some("anv"));
    }
}
