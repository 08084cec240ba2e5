//! ARM: Mesa's PanVK on the panfrost shim. Debian builds both for arm64 only.

use crate::driver::{CompileMethod, TextSource, Vendor, coded_family};
use crate::line::{CodeOperation, CodePath, LineKind};
use crate::text::{DisassemblerDialect, LineRule, access_rule, classify_line, note_rule, order_rule};

/// Mesa's PanVK.
pub const PANVK: Vendor = Vendor {
    selector_prefix: "panvk",
    display_name: "PanVK",
    driver_id: 20,
    driver_file_prefix: "panfrost_icd",
    library: "libvulkan_panfrost.so",
    compile_methods: &[CompileMethod::Shim {
        library: "libpanfrost_noop_drm_shim.so",
        variable: Some("PAN_GPU_ID"),
        has_chip_names: false,
    }],
    install: "Debian for arm64 alone, on such a machine or under qemu-user: mesa-vulkan-drivers and mesa-drm-shim; the memory \
              model is there from Mesa 26.1",
    environment: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_flag: None,
    text_source: TextSource::Properties,
    chip_prefix: None,
    families: &[
        coded_family("g31", &["7093"], "v7", "7093"),
        coded_family("g52", &["7212"], "v7", "7212"),
        coded_family("g310", &["ac74"], "v10", "ac74"),
        coded_family("g610", &["a867"], "v10", "a867"),
    ],
    dialect: &DIALECT,
    descriptors: None,
};

/// The dialect of its Valhall disassembler.
pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "valhall",
    rules: RULES,
    has_constant_addresses: false,
    fillers: &["NOP"],
    register_prefixes: &['r', 'u'],
    block_prefix: "clause_",
    ..DisassemblerDialect::new("valhall", read_line)
};

const RULES: &[LineRule] = &[
    order_rule("BARRIER", "control barrier"),
    access_rule("LD_PKA", CodeOperation::Load, CodePath::Address),
    access_rule("LOAD", CodeOperation::Load, CodePath::Address),
    access_rule("STORE", CodeOperation::Store, CodePath::Address),
    access_rule("ATOM", CodeOperation::Atomic, CodePath::Address),
    access_rule("LD_TEX", CodeOperation::Load, CodePath::Image),
    LineRule { pattern: "LEA_", kind: Some(LineKind::Descriptor), description: "" },
    LineRule { pattern: "BRANCH", kind: Some(LineKind::Jump), description: "" },
    note_rule(".wait", "waits for the numbered slots"),
    note_rule(".slot", "a result in a slot"),
];

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.trim();
    if text.is_empty() || text == "{" || text == "}" || text.starts_with("ds(") {
        return None;
    }
    Some((text, if text.ends_with(':') { LineKind::Label } else { classify_line(RULES, text) }))
}
