//! GPU vendors as plain data: drivers that compile without hardware, their chips, and the dialect of their
//! machine code.
//!
//! Each vendor has one file of data; functions that read its machine code, if it needs any, are in the module
//! of the same name. [`VENDORS`] lists the drivers. The crates `device` (starts drivers), `codegen`
//! (reads their text) and `isa` (explores it) use this data.
//!
//! ```
//! let (vendor, chip) = vendor::find_by_device_name("AMD Radeon RX 6800 (RADV NAVI21)").unwrap();
//! assert_eq!((&*vendor.selector_prefix, &*chip.name, &*chip.target), ("radv", "navi21", "gfx1030"));
//! ```

mod amd;
mod apple;
mod driver;
mod intel;
mod line;
mod nvidia;
pub mod order;
mod qualcomm;
mod text;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

pub use driver::{ChipFamily, CompileMethod, DescriptorLayout, TextSource, Vendor};
pub use line::{CodeAccess, CodeOperation, CodePath, LineKind};
pub use text::DisassemblerDialect;

use crate::order::{OrderRequirement, RequirementPart};
use crate::text::DialectReader;

/// A file of `data/`: drivers with one dialect.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorFile {
    vendor: Vec<Vendor>,
    dialect: DisassemblerDialect,
    /// Parts of requirements, by name.
    #[serde(default)]
    parts: BTreeMap<String, RequirementPart>,
    #[serde(default)]
    order_requirements: Vec<OrderRequirement>,
    #[serde(default)]
    workgroup_requirements: Vec<OrderRequirement>,
}

/// Lines without a colon at the end are instructions, which the rules classify.
const ARM_READER: DialectReader = DialectReader::of_lines(|dialect, line| {
    let text = line.trim();
    if text.is_empty() || text == "{" || text == "}" || text.starts_with("ds(") {
        return None;
    }
    Some((text, if text.ends_with(':') { LineKind::Label } else { dialect.classify_line(text) }))
});

/// Every line is one of instructions.
const BROADCOM_READER: DialectReader = DialectReader::of_lines(|dialect, line| {
    let text = line.trim();
    (!text.is_empty()).then(|| (text, dialect.classify_line(text)))
});

/// The files of vendors, and the functions of their dialects.
const FILES: [(&str, DialectReader); 7] = [
    (include_str!("../data/amd.toml"), amd::READER),
    (include_str!("../data/nvidia.toml"), nvidia::READER),
    (include_str!("../data/intel.toml"), intel::READER),
    (include_str!("../data/qualcomm.toml"), qualcomm::READER),
    (include_str!("../data/apple.toml"), apple::READER),
    (include_str!("../data/arm.toml"), ARM_READER),
    (include_str!("../data/broadcom.toml"), BROADCOM_READER),
];

/// The drivers of all vendors.
pub static VENDORS: LazyLock<Vec<Vendor>> = LazyLock::new(|| {
    let read = |(text, reader): (&str, DialectReader)| {
        let file: VendorFile = toml::from_str(text)?;
        let dialect = DisassemblerDialect {
            order_requirements: file.order_requirements,
            workgroup_requirements: file.workgroup_requirements,
            parts: file.parts,
            reader: Some(reader),
            ..file.dialect
        };
        let vendors =
            file.vendor.into_iter().map(move |vendor| Vendor { dialect: dialect.clone(), ..vendor });
        Ok::<_, toml::de::Error>(vendors)
    };
    let files: Result<Vec<_>, _> = FILES.into_iter().map(read).collect();
    #[expect(clippy::expect_used, reason = "the files are constants, which the tests read")]
    files.expect("the data of vendors").into_iter().flatten().collect()
});

/// Returns AMD's vendor, whose code the explorer supports.
pub fn radv() -> &'static Vendor {
    &VENDORS[0]
}

/// The dialect of unknown drivers: lines are not classified. Registers and blocks are recognized as in AMD's
/// dialect.
pub static PLAIN: LazyLock<DisassemblerDialect> = LazyLock::new(|| DisassemblerDialect {
    name: "plain".to_owned(),
    rules: Vec::new(),
    barriers: Vec::new(),
    order_requirements: Vec::new(),
    workgroup_requirements: Vec::new(),
    reader: None,
    ..radv().dialect.clone()
});

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
        VENDORS.iter().find(|vendor| vendor.families.contains(self))
    }
}

/// Returns the vendor and the family of a device by its driver's device name.
pub fn find_by_device_name(device_name: &str) -> Option<(&'static Vendor, &'static ChipFamily)> {
    VENDORS
        .iter()
        .find_map(|vendor| Some((vendor, vendor.find_family(&vendor.chip_in_device_name(device_name)?)?)))
}

/// Returns the name of a compile-only device by its driver's device name: `radv:navi31`.
pub fn compile_only_name(device_name: &str) -> Option<String> {
    VENDORS.iter().find_map(|vendor| {
        let chip = vendor.chip_in_device_name(device_name)?;
        let name = vendor.find_family(&chip).map_or(chip.as_str(), |family| &family.name);
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
    VENDORS.iter().find(|vendor| vendor.driver_id == driver_id).map(|vendor| (vendor, None))
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
        name.strip_prefix(&vendor.driver_file_prefix)
            .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".json"))
    };
    VENDORS.iter().find(is_driver_file_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_by_all_their_names() {
        let name = |text| ChipFamily::find_by_name(text).map(|family| family.name.as_str());
        assert_eq!(name("NAVI31"), Some("navi31"));
        assert_eq!(name("gfx1100"), Some("navi31"));
        assert_eq!(name("raphael"), Some("raphael_mendocino"));
        assert_eq!(name("bogus"), None);
    }

    #[test]
    fn every_name_selects_one_family_of_one_vendor() {
        let families = || VENDORS.iter().flat_map(|vendor| &vendor.families);
        let names: Vec<&str> = families().flat_map(ChipFamily::all_names).collect();
        let mut unique_names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        unique_names.sort_unstable();
        unique_names.dedup();
        assert_eq!(unique_names.len(), names.len());
        for vendor in VENDORS.iter() {
            assert!(vendor.families.iter().all(|family| family.find_vendor() == Some(vendor)));
            assert_eq!(parse_selector(&format!("{}:*", vendor.selector_prefix)), Some((vendor, "*")));
            assert!(find_by_driver_file(&format!("{}.json", vendor.driver_file_prefix)).is_some());
        }
    }

    #[test]
    fn requirements_consist_of_known_parts() {
        for dialect in VENDORS.iter().map(|vendor| &vendor.dialect) {
            let all = dialect.order_requirements.iter().chain(&dialect.workgroup_requirements);
            for requirement in all {
                let unknown = requirement.steps.iter().find(|name| !dialect.parts.contains_key(*name));
                assert_eq!(unknown, None, "{}", dialect.name);
            }
        }
        assert_eq!(radv().selector_prefix, "radv");
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
                .map(|(vendor, family)| (&*vendor.selector_prefix, family.map(|family| &*family.name)))
        };
        assert_eq!(identify("nvk:ga102", "NVK ", 24), Some(("nvk", Some("ga102"))));
        assert_eq!(
            identify("NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 (NVK GA102)", 24),
            Some(("nvk", None))
        );
        assert_eq!(identify("x", "AMD Radeon RX 6800 (RADV NAVI21)", 3), Some(("radv", Some("navi21"))));
        assert_eq!(identify("lavapipe", "llvmpipe (LLVM 15)", 13), None);
        assert_eq!(
            find_by_driver_file("intel_hasvk_icd.x86_64.json").map(|vendor| &*vendor.selector_prefix),
            Some("hasvk")
        );
        assert_eq!(
            find_by_driver_file("intel_icd.x86_64.json").map(|vendor| &*vendor.selector_prefix),
            Some("anv")
        );
    }
}
