//! Vendors of GPUs, as plain data: a driver that compiles without its hardware, the chips that it compiles for, and how
//! the text of its machine code reads. All that is known of one stands in one file, and [`VENDORS`] lists them.
//!
//! Who starts drivers (`device`), who reads their text (`codegen`) and who explores it (`isa`) take from here what they
//! need.
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

pub use text::Dialect;

/// A vendor's driver.
#[derive(Debug)]
pub struct Vendor {
    /// What selectors of its compile-only devices begin with, before a colon: `radv`.
    pub word: &'static str,
    /// What people call the driver.
    pub driver: &'static str,
    /// Its `VkDriverId`, which devices of its hardware have too.
    pub driver_id: i32,
    /// What the names of its driver files begin with.
    pub driver_file: &'static str,
    /// The library behind them, where a driver file names none that is found.
    pub library: &'static str,
    /// How it is made to compile for a chip that is not there: the first way that an installation has is taken.
    pub ways: &'static [CompileWay],
    /// Where the driver and what a way takes are to be had.
    pub install: &'static str,
    /// Variables that are set besides: caches would hide crashes and times.
    pub settings: &'static [(&'static str, &'static str)],
    /// A variable that lists words, and the word that is added to what it lists already.
    pub debug_word: Option<(&'static str, &'static str)>,
    /// Where the text of its machine code comes from.
    pub text_from: TextSource,
    /// What stands before a chip in the names that it gives to devices, where they have one: `(RADV ` of `… (RADV NAVI31)`.
    pub before_chip: Option<&'static str>,
    /// The chips that some version knows, oldest first.
    pub families: &'static [Family],
    /// How its machine code reads.
    pub dialect: &'static Dialect,
    /// How descriptors lie in a set, where the explorer knows the code.
    pub descriptors: Option<Descriptors>,
}

impl Vendor {
    /// Returns true if its compiler takes split barriers as `SPV_INTEL_split_barrier` tells them, by what the driver says of its version.
    /// All drivers here are Mesa's, whose compilers share what reads SPIR-V: seen with 26.2.6, and not yet there in 25.0.7.
    pub fn takes_intel_split_barriers(&self, driver_info: &str) -> bool {
        let version = driver_info.strip_prefix("Mesa ").unwrap_or_default();
        let mut numbers = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
        (major, minor) >= (26, 2)
    }
}

/// How a driver is made to compile for a chip that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileWay {
    /// By a back end of its own that has no hardware.
    NullBackEnd {
        /// The variable of the environment that chooses the chip.
        variable: &'static str,
        /// A string that its library holds as long as it has this back end.
        sign: &'static str,
    },
    /// By a library that is loaded first and stands in for a kernel's device (Mesa's drm-shim).
    Shim {
        /// The library.
        library: &'static str,
        /// The variable of the environment that chooses the chip; a shim without one stands in for one chip.
        variable: Option<&'static str>,
        /// True if the library holds the names of the chips that it knows.
        names_chips: bool,
    },
}

/// Where the text of a driver's machine code comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// `VK_KHR_pipeline_executable_properties`.
    Properties,
    /// Standard output, while a pipeline is made, shader after shader: NIR, then code.
    StandardOutput {
        /// The beginning of the line that names a shader's stage, before the name.
        shader: &'static str,
        /// The beginning of the line from which on there is code.
        code: &'static str,
    },
}

impl TextSource {
    /// The forms of the code of a stage's shader (`COMPUTE`, `VERTEX`, `FRAGMENT`), with their names, in what a driver wrote to
    /// standard output.
    pub fn forms<'o>(self, output: &'o str, stage: &str) -> Vec<(&'static str, &'o str)> {
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

/// A family of chips for which there is code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name in selectors: what the latest driver calls it, in lower case. No two vendors have a name in common.
    pub name: &'static str,
    /// What others call it: earlier drivers first.
    pub others: &'static [&'static str],
    /// The target of compilers that code for it has: `gfx1030`.
    pub target: &'static str,
    /// What the variable of a shim takes for it.
    pub shim: &'static str,
}

/// A family that has one name, which shims take as well.
pub(crate) const fn chip(name: &'static str, target: &'static str) -> Family {
    Family { name, others: &[], target, shim: name }
}

/// A family for which shims have a code.
pub(crate) const fn coded(
    name: &'static str,
    others: &'static [&'static str],
    target: &'static str,
    shim: &'static str,
) -> Family {
    Family { name, others, target, shim }
}

/// Bytes of descriptors in a set, to multiples of which they are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Of a buffer or texel buffer.
    pub buffer_bytes: u32,
    /// Of an image.
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

/// The variable by which a process knows which compile-only device it was started for: `nvk:ga102`. Devices on a shim
/// look like hardware, and not all have a chip in their name.
pub const CHOSEN_VARIABLE: &str = "VK_LITMUS_COMPILE_ONLY";

impl PartialEq for Vendor {
    fn eq(&self, other: &Vendor) -> bool {
        self.word == other.word
    }
}

impl Eq for Vendor {}

impl Vendor {
    /// The family that is meant by a name, whatever the case: its own, or what others call it.
    pub fn family(&self, name: &str) -> Option<&'static Family> {
        self.families.iter().find(|family| family.names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The chip that its driver names in a device's name, in lower case; some version may know one that is not listed.
    pub fn chip_of(&self, device_name: &str) -> Option<String> {
        let (_, behind) = device_name.split_once(self.before_chip?)?;
        let chip = behind.split([')', ' ']).next().filter(|chip| !chip.is_empty())?;
        Some(chip.to_lowercase())
    }
}

impl Family {
    /// All its names, its own first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.others.iter().copied())
    }

    /// The family of any vendor that is meant by a name, whatever the case.
    pub fn named(name: &str) -> Option<&'static Family> {
        VENDORS.iter().find_map(|vendor| vendor.family(name))
    }

    /// Whose it is.
    pub fn vendor(&self) -> Option<&'static Vendor> {
        VENDORS.iter().copied().find(|vendor| vendor.families.contains(self))
    }
}

/// The vendor and the family of a device by the name that its driver gives it.
pub fn of_device(device_name: &str) -> Option<(&'static Vendor, &'static Family)> {
    VENDORS.iter().find_map(|vendor| Some((*vendor, vendor.family(&vendor.chip_of(device_name)?)?)))
}

/// The name of a compile-only device by the name that its driver gives it: `radv:navi31`.
pub fn name_of(device_name: &str) -> Option<String> {
    VENDORS.iter().find_map(|vendor| {
        let chip = vendor.chip_of(device_name)?;
        let name = vendor.family(&chip).map_or(chip.as_str(), |family| family.name);
        Some(format!("{}:{name}", vendor.word))
    })
}

/// Whose a device is, and its family where that is known: by its name where it is a compile-only one (`nvk:ga102`), by the
/// name that its driver gives it, or by its `VkDriverId`.
pub fn of_identity(
    name: &str,
    device_name: &str,
    driver_id: i32,
) -> Option<(&'static Vendor, Option<&'static Family>)> {
    if let Some((vendor, chip)) = of_selector(name) {
        return Some((vendor, vendor.family(chip)));
    }
    if let Some((vendor, family)) = of_device(device_name) {
        return Some((vendor, Some(family)));
    }
    VENDORS.iter().find(|vendor| vendor.driver_id == driver_id).map(|vendor| (*vendor, None))
}

/// The vendor that a selector names, and what stands behind its colon.
pub fn of_selector(text: &str) -> Option<(&'static Vendor, &str)> {
    let (word, rest) = text.split_once(':')?;
    let vendor = VENDORS.iter().find(|vendor| vendor.word.eq_ignore_ascii_case(word))?;
    Some((vendor, rest))
}

/// The vendor whose driver file has this name.
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
        let name = |text| Family::named(text).map(|family| family.name);
        assert_eq!(name("NAVI31"), Some("navi31"));
        assert_eq!(name("gfx1100"), Some("navi31"));
        assert_eq!(name("raphael"), Some("raphael_mendocino"));
        assert_eq!(name("bogus"), None);
    }

    #[test]
    fn every_name_means_one_family_of_one_vendor() {
        let families = || VENDORS.iter().flat_map(|vendor| vendor.families);
        let names: Vec<&str> = families().flat_map(Family::names).collect();
        let mut once: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
        for vendor in VENDORS {
            assert!(
                vendor.families.iter().all(|family| family.vendor().map(|v| v.word) == Some(vendor.word))
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
        // With another backend.
        assert_eq!(name_of("Null hardware (RADV VEGA10 (LLVM 19.1.7))").as_deref(), Some("radv:vega10"));
        // One that no list has yet.
        assert_eq!(name_of("Null hardware (RADV GFX1300)").as_deref(), Some("radv:gfx1300"));
        assert!(of_device("llvmpipe").is_none());
    }

    #[test]
    fn devices_have_their_vendors_dialect_whether_they_are_there_or_not() {
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
