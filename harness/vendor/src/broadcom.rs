//! Broadcom: Mesa's V3DV on the v3d shim. Debian builds both for arm64 only.

use crate::driver::{CompileMethod, TextSource, Vendor, single_name_family};
use crate::line::{CodeOperation, CodePath, LineKind};
use crate::text::{DisassemblerDialect, LineRule, access_rule, classify_line, order_rule};

/// Mesa's V3DV.
pub const V3DV: Vendor = Vendor {
    selector_prefix: "v3dv",
    display_name: "V3DV",
    driver_id: 19,
    driver_file_prefix: "broadcom_icd",
    library: "libvulkan_broadcom.so",
    compile_methods: &[CompileMethod::Shim {
        library: "libv3d_noop_drm_shim.so",
        variable: None,
        has_chip_names: false,
    }],
    install: "Debian for arm64 alone, on such a machine or under qemu-user: mesa-vulkan-drivers and mesa-drm-shim, and a \
              preload that answers what the shim does not (DRM_V3D_GET_PARAM)",
    environment: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_flag: None,
    text_source: TextSource::Properties,
    chip_prefix: None,
    families: &[single_name_family("v3d42", "v42")],
    dialect: &DIALECT,
    descriptors: None,
};

/// The dialect of its disassembler. A line has up to three instructions, and is classified by its memory
/// operation.
pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "qpu",
    rules: RULES,
    has_constant_addresses: false,
    register_prefixes: &['r'],
    ..DisassemblerDialect::new("qpu", read_line)
};

const RULES: &[LineRule] = &[
    access_rule("ldtmu", CodeOperation::Load, CodePath::Address),
    access_rule("tmud", CodeOperation::Store, CodePath::Address),
    order_rule("tmuwt", "wait until all writes are done"),
    order_rule("barrierid", "control barrier"),
    LineRule { pattern: "b.", kind: Some(LineKind::Jump), description: "" },
];

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    (!text.is_empty()).then(|| (text, classify_line(RULES, text)))
}
