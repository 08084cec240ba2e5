//! GPU vendors as plain data: drivers that compile without hardware, their chips, and the dialect of their
//! machine code.
//!
//! Each vendor has one file, and [`VENDORS`] lists them. The crates `device` (starts drivers), `codegen`
//! (reads their text) and `isa` (explores it) use this data.
//!
//! ```
//! let (vendor, chip) = vendor::find_by_device_name("AMD Radeon RX 6800 (RADV NAVI21)").unwrap();
//! assert_eq!((vendor.selector_prefix, chip.name, chip.target), ("radv", "navi21", "gfx1030"));
//! ```

pub mod amd;
pub mod apple;
pub mod arm;
pub mod broadcom;
mod driver;
pub mod intel;
mod line;
pub mod nvidia;
pub mod order;
pub mod qualcomm;
pub mod text;

pub use driver::{ChipFamily, CompileMethod, DescriptorLayout, TextSource, Vendor};
pub use line::{CodeAccess, CodeOperation, CodePath, LineKind};
pub use text::DisassemblerDialect;

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

/// The dialect of unknown drivers: lines are not classified. Registers and blocks are recognized as in AMD's
/// dialect.
pub const PLAIN: DisassemblerDialect = DisassemblerDialect {
    name: "plain",
    rules: &[],
    order_requirements: &[],
    workgroup_requirements: &[],
    barriers: &[],
    resource_numbers: order::no_resource_numbers,
    read_line: |line| {
        let text = line.trim();
        (!text.is_empty()).then_some((text, LineKind::Other))
    },
    recognizes_memory: false,
    ..amd::DIALECT
};

/// The variable that selects the compile-only device of a process: `nvk:ga102`.
///
/// Devices on a shim look like hardware, and not all have a chip in their name.
pub const SELECTOR_VARIABLE: &str = "VK_LITMUS_COMPILE_ONLY";

impl ChipFamily {
    /// Returns the family of any vendor with a name; case-insensitive.
    pub fn find_by_name(name: &str) -> Option<&'static ChipFamily> {
        VENDORS.iter().find_map(|vendor| vendor.find_family(name))
    }

    pub fn find_vendor(&self) -> Option<&'static Vendor> {
        VENDORS.iter().copied().find(|vendor| vendor.families.contains(self))
    }
}

/// Returns the vendor and the family of a device by its driver's device name.
pub fn find_by_device_name(device_name: &str) -> Option<(&'static Vendor, &'static ChipFamily)> {
    VENDORS
        .iter()
        .find_map(|vendor| Some((*vendor, vendor.find_family(&vendor.chip_in_device_name(device_name)?)?)))
}

/// Returns the name of a compile-only device by its driver's device name: `radv:navi31`.
pub fn compile_only_name(device_name: &str) -> Option<String> {
    VENDORS.iter().find_map(|vendor| {
        let chip = vendor.chip_in_device_name(device_name)?;
        let name = vendor.find_family(&chip).map_or(chip.as_str(), |family| family.name);
        Some(format!("{}:{name}", vendor.selector_prefix))
    })
}

/// Returns the vendor of a device, and its family if known.
///
/// It is identified by the name of a compile-only device (`nvk:ga102`), by its driver's device name, or by
/// its `VkDriverId`.
pub fn find_by_identity(
    name: &str,
    device_name: &str,
    driver_id: i32,
) -> Option<(&'static Vendor, Option<&'static ChipFamily>)> {
    if let Some((vendor, chip)) = parse_selector(name) {
        return Some((vendor, vendor.find_family(chip)));
    }
    if let Some((vendor, family)) = find_by_device_name(device_name) {
        return Some((vendor, Some(family)));
    }
    VENDORS.iter().find(|vendor| vendor.driver_id == driver_id).map(|vendor| (*vendor, None))
}

/// Returns the vendor that a selector names, and the text after the colon.
pub fn parse_selector(text: &str) -> Option<(&'static Vendor, &str)> {
    let (word, rest) = text.split_once(':')?;
    let vendor = VENDORS.iter().find(|vendor| vendor.selector_prefix.eq_ignore_ascii_case(word))?;
    Some((vendor, rest))
}

pub fn find_by_driver_file(name: &str) -> Option<&'static Vendor> {
    // `radeon_icd.json`, `radeon_icd.x86_64.json`.
    let is_driver_file_of = |vendor: &&Vendor| {
        name.strip_prefix(vendor.driver_file_prefix)
            .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".json"))
    };
    VENDORS.iter().copied().find(is_driver_file_of)
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
        let mut unique_names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        unique_names.sort_unstable();
        unique_names.dedup();
        assert_eq!(unique_names.len(), names.len());
        for vendor in VENDORS {
            assert!(vendor.families.iter().all(
                |family| family.find_vendor().map(|v| v.selector_prefix) == Some(vendor.selector_prefix)
            ));
            assert_eq!(
                parse_selector(&format!("{}:*", vendor.selector_prefix))
                    .map(|(v, rest)| (v.selector_prefix, rest)),
                Some((vendor.selector_prefix, "*"))
            );
            assert!(find_by_driver_file(&format!("{}.json", vendor.driver_file_prefix)).is_some());
        }
    }

    #[test]
    fn compile_only_devices_are_named_after_their_family() {
        assert_eq!(compile_only_name("Null hardware (RADV GFX1100)").as_deref(), Some("radv:navi31"));
        // With another back end.
        assert_eq!(
            compile_only_name("Null hardware (RADV VEGA10 (LLVM 19.1.7))").as_deref(),
            Some("radv:vega10")
        );
        // A chip that is not in our list.
        assert_eq!(compile_only_name("Null hardware (RADV GFX1300)").as_deref(), Some("radv:gfx1300"));
        assert!(find_by_device_name("llvmpipe").is_none());
    }

    #[test]
    fn devices_have_the_dialect_of_their_vendor() {
        let identify = |name, device, id| {
            find_by_identity(name, device, id)
                .map(|(vendor, family)| (vendor.selector_prefix, family.map(|family| family.name)))
        };
        assert_eq!(identify("nvk:ga102", "NVK ", 24), Some(("nvk", Some("ga102"))));
        assert_eq!(
            identify("NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 (NVK GA102)", 24),
            Some(("nvk", None))
        );
        assert_eq!(identify("x", "AMD Radeon RX 6800 (RADV NAVI21)", 3), Some(("radv", Some("navi21"))));
        assert_eq!(identify("lavapipe", "llvmpipe (LLVM 15)", 13), None);
        assert_eq!(
            find_by_driver_file("intel_hasvk_icd.x86_64.json").map(|vendor| vendor.selector_prefix),
            Some("hasvk")
        );
        assert_eq!(
            find_by_driver_file("intel_icd.x86_64.json").map(|vendor| vendor.selector_prefix),
            Some("anv")
        );
    }
}
